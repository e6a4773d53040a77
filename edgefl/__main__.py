"""Run the `edgefl` command as `python -m edgefl`."""

from edgefl.commands.cli import main

main()
