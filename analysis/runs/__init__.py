"""Run directories as tidy tables, and the settings in their scenarios."""
