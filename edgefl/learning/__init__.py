"""Training with PyTorch: models, data, local training, algorithms and warm starts, without simulated time."""
