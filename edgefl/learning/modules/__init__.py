"""PyTorch modules: layers, parameters, facts about them, and model files."""
