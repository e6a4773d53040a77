"""Scores of models on test data and on devices' own data, and further metrics."""
