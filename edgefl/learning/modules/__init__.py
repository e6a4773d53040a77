"""Tools for PyTorch modules: layers, flat parameter vectors, facts about layers, and model files."""
