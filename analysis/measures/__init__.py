"""What is measured of runs: values, and how sure they are."""
