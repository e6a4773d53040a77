"""Reports, each in a module that measures runs and shows the result in tables, figures and sentences."""
