"""The one exception a user can cause."""


class EdgeflError(Exception):
    """Bad input, named with its place and its remedy. The command line prints it and exits with 2."""
