"""The learners that a run may have: PyTorch's, one that trains nothing, or your own."""
