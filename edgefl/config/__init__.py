"""Read settings from YAML files, with strict types, components by name, and error messages."""
