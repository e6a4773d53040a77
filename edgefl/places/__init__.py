"""Maps: areas by name, and the place on Earth where they lie."""
