"""Training with PyTorch: models, data, local training, algorithms, warm starts. There is no clock here."""
