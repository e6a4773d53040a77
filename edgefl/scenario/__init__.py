"""The description of a run, and its world."""
