"""The commands that read run directories."""
