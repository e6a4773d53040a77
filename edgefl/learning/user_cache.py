"""Find the user's cache of downloads, and the user's home folder."""

import os
from pathlib import Path

from edgefl.errors import EdgeflError


def user_cache() -> Path | None:
    """Return edgefl's cache folder, following the XDG base directory specification (which ignores relative paths).

    Return None if the user has no home folder, as in a container with a numeric user.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if base.is_absolute():
        return base / "edgefl"
    try:
        return Path.home() / ".cache" / "edgefl"
    except RuntimeError:
        return None


def without_tilde(path: Path) -> Path:
    """Replace a path's leading tilde with the user's home folder.

    Raises:
        EdgeflError: the user has no home folder.
    """
    try:
        return path.expanduser()
    except RuntimeError as error:
        raise EdgeflError(f"{path}: the user has no home folder; write the path without ~") from error
