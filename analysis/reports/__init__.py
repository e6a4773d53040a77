"""Reports: each module measures runs and shows the result in tables, figures and sentences."""
