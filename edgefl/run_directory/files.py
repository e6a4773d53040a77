"""Files that are whole or not there, and errors that name them."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from edgefl.errors import EdgeflError


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the operating system refuses, a full disk most of all, is an error about this path."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise EdgeflError(f"{path}: cannot be written ({why}); make room or choose another --out") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the operating system refuses to read is an error about this path."""
    try:
        yield
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise EdgeflError(
            f"{path}: cannot be read ({why}); delete it, and run again what it is of"
        ) from error


def draft_of(path: Path) -> Path:
    """Where a file is written until it is whole."""
    return path.with_name(path.name + ".part")


def replace(path: Path, text: str) -> None:
    """Write a file in one step: a reader never sees half of it, nor do two that write it at a time meet."""
    draft = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    except BaseException:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def keep(path: Path, text: str) -> None:
    """As `replace`, and it is on the disk afterwards, even if the power fails."""
    draft_of(path).write_text(text, encoding="utf-8")
    settle(path)


def settle(path: Path) -> None:
    """Give a draft its name, once it is on the disk."""
    draft = draft_of(path)
    _sync(draft)
    draft.replace(path)
    if os.name == "posix":  # a directory's own entry; elsewhere directories cannot be opened
        _sync(path.parent)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
