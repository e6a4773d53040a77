"""Where downloads are kept, and what has been compiled for this machine."""

import os
from pathlib import Path


def user_cache() -> Path:
    """Return edgefl's folder, after the XDG base directory specification (it ignores relative paths)."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "edgefl"
