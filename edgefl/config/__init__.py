"""Read settings: YAML, strict types, components by name, and error messages."""
