"""Score models on test data and on devices' own test data, and compute extra metrics."""
