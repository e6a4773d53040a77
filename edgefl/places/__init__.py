"""Maps: named areas, streets and masts, and their geographic location."""
