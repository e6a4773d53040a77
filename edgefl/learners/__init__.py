"""The learners of a run: PyTorch's, one without training, or your own."""
