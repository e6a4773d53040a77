"""Run the `edgefl` command as `python -m edgefl`."""

from edgefl.commands.cli import main

if __name__ == "__main__":
    main()
