"""Train with PyTorch, without simulated time: models, data, local training, algorithms and warm starts."""
