"""Locate the files that a scenario names: beside the scenario, or in the current folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, get_args

HOME = (
    Path(__file__).resolve().parents[1]
)  # `scenarios` and `examples` are here; in a checkout they are links
WHERE = "a relative path starts from the scenario file's folder, or from the current folder"
_folder: ContextVar[Path | None] = ContextVar("folder of a scenario's files", default=None)


@contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Search this folder for the files that a scenario names, then the current one."""
    before = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(before)


def located(value: Any, kind: Any) -> Any:
    """Return the absolute path of a file that a scenario names, so that scenario.yaml can be loaded from anywhere.

    Values that are no path, missing files and shipped files are returned unchanged.
    """
    folder = _folder.get()
    if folder is None or Path not in (kind, *get_args(kind)) or not isinstance(value, str | Path):
        return value
    own = HOME / value
    for place in (folder / value, Path.cwd() / value):
        if os.path.exists(place):
            comes_with_edgefl = (
                Path(value).parts[:1] == ("scenarios",) and own.exists() and own.samefile(place)
            )
            return value if comes_with_edgefl else os.path.abspath(place)
    return value
