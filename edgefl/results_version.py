"""The version of what a run's numbers are: a finished run of another version is never taken for this one's."""

# Raise it with every change that moves results (CONTRIBUTING.md, "What may move results").
RESULTS_VERSION = 2
