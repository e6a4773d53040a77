"""Text output: numbers, tables, Markdown, LaTeX, and the report that writes and prints them."""
