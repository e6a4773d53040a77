"""Reading settings: YAML, strict types, components by name, and what to say where one is wrong."""
