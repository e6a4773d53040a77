"""Run directories as tidy tables, and what their scenarios say."""
