"""One run: check, compose, execute in processes, resume, record."""
