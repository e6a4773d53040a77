"""Read settings: YAML files, strict types, components by name, and error messages."""
