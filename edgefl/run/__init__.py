"""Check, compose, execute, record and resume one run."""
