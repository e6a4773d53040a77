"""Where a report is written: its folder is made, and one that cannot be written is named with the remedy."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def writing_to(folder: Path) -> Iterator[None]:
    """Make a report's folder, and write into it within this.

    Raises:
        ValueError: the folder cannot be made, or not be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise ValueError(
            f"cannot write to {folder} ({error.strerror or error}): choose another folder with --out"
        ) from error
