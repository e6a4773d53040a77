"""`python -m analysis COMMAND ...`: the same commands as `edgefl COMMAND ...`."""

import sys

from analysis.command_line import main

if __name__ == "__main__":
    sys.exit(main())
