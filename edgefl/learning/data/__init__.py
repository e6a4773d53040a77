"""Samples in memory, their distribution to devices, and mini-batches."""
