"""Locate the files that a scenario names, in the scenario's folder or in the current folder."""

import glob
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, get_args

HOME = (
    Path(__file__).resolve().parents[1]
)  # this folder contains `scenarios` and `examples`; in a checkout they are links
WHERE = "a relative path starts from the scenario file's folder, or from the current folder"
_folder: ContextVar[Path | None] = ContextVar("folder of a scenario's files", default=None)


@contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Within a `with` block, search this folder before the current one for files that a scenario names."""
    before = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(before)


def located(value: Any, kind: Any) -> Any:
    """Return the absolute path of a file that a scenario names, so that scenario.yaml can be loaded from anywhere.

    Values that are not paths, and paths of missing or shipped files, are returned unchanged.
    """
    folder = _folder.get()
    if folder is None or Path not in (kind, *get_args(kind)) or not isinstance(value, str | Path):
        return value
    own = HOME / value
    for place in (folder / value, Path.cwd() / value):
        if os.path.exists(place) or _matches(place):
            comes_with_edgefl = (
                Path(value).parts[:1] == ("scenarios",) and own.exists() and own.samefile(place)
            )
            return value if comes_with_edgefl else os.path.abspath(place)
    return value


def files_of(path: Path) -> list[Path]:
    """List the files of a path: one file, all files below a folder, or all that match a pattern like taxis/*.csv.

    Hidden files are left out. A path that does not exist is returned unchanged; its reader then reports the error.
    """
    if not path.is_dir():
        return sorted(_matches(path)) or [path]
    below = (file for file in path.rglob("[!.]*") if file.is_file())
    return sorted(file for file in below if not any(name[0] == "." for name in file.relative_to(path).parts))


def _matches(pattern: Path) -> list[Path]:
    """Return the files that match a pattern with * or ?; [] if the path has neither, or exists as written."""
    if not glob.has_magic(str(pattern)) or os.path.exists(pattern):
        return []
    found = map(Path, glob.glob(str(pattern), recursive=True))
    return [file for file in found if file.is_file()]
