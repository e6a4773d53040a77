"""Write files atomically, and report errors with their path."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from edgefl.errors import EdgeflError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn an OSError on writing, such as on a full disk, into an error that names the path."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise EdgeflError(
            f"{path}: cannot be written ({why}); free some space or choose another --out"
        ) from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn an OSError on reading into an error that names the path."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise EdgeflError(
            f"{path}: cannot be read ({why}); delete it, and repeat the run that wrote it"
        ) from error


def draft_of(path: Path) -> Path:
    """Return the path at which a file is written until it is complete."""
    return path.with_name(path.name + ".part")


def replace(path: Path, text: str) -> None:
    """Write a file atomically, so that readers never see half a file and concurrent writers do not collide."""
    draft = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def keep(path: Path, text: str) -> None:
    """Write a file atomically, as `replace` does, and sync it to disk, so that it survives a power failure."""
    draft_of(path).write_text(text, encoding="utf-8")
    settle(path)


def settle(path: Path) -> None:
    """Rename a draft to its final name after syncing it to disk."""
    draft = draft_of(path)
    _sync(draft)
    draft.replace(path)
    if os.name == "posix":  # sync the directory entry; elsewhere directories cannot be opened
        _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
