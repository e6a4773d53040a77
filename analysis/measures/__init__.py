"""Metrics of runs, and their uncertainty."""
