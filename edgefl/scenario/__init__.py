"""One run described, and the world that it describes."""
