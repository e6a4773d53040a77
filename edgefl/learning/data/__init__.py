"""Samples in memory, the samples of each device, and mini-batches drawn from them."""
