"""The version of edgefl, and the version of its results."""

__version__ = "0.1.0"
# Increase this number with every change that moves results (CONTRIBUTING.md, "What may move results").
RESULTS_VERSION = 23
