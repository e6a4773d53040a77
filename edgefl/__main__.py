"""Run the `edgefl` command by `python -m edgefl`."""

from edgefl.commands.cli import main

main()
