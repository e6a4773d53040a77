"""Tools for PyTorch modules, such as layers, flat parameter vectors, facts about layers, and model files."""
