"""The learners of a run, which are PyTorch's, one without training, or your own."""
