"""The version of edgefl, and the version of its results."""

__version__ = "0.1.0"
# Raise it with every change that moves results (CONTRIBUTING.md, "What may move results").
RESULTS_VERSION = 22
