"""Tools for PyTorch modules: layers, flat parameter vectors, facts about modules, and model files."""
