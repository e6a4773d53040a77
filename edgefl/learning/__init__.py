"""PyTorch: models, data, local training, algorithms, warm starts. Knows tensors, no clock."""
