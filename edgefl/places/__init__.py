"""Maps: areas by name, and their position on Earth."""
