"""The reports: one file measures runs, and tells of them in tables, figures and sentences."""
