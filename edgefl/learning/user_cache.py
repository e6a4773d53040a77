"""Folders of the user: where downloads are kept, and what a tilde stands for."""

import os
from pathlib import Path

from edgefl.errors import EdgeflError


def user_cache() -> Path | None:
    """Return edgefl's folder, after the XDG base directory specification (it ignores relative paths).

    None: the user has no home folder, as in a container with a number for a user.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "edgefl"
    try:
        return Path.home() / ".cache" / "edgefl"
    except RuntimeError:
        return None


def without_tilde(path: Path) -> Path:
    """Return a path with the user's home folder in place of a leading tilde.

    Raises:
        EdgeflError: there is no such folder.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise EdgeflError(f"{path}: the user has no home folder; write the path without ~") from error
