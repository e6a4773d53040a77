"""Write numbers, tables, Markdown and LaTeX as text, and the report that prints them."""
