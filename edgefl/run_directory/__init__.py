"""A run on disk: its tables and status, the journal of its learner's answers, and how to resume it."""
