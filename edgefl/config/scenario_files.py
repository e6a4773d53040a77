"""Where the files lie that a scenario names: beside the scenario, or in the current folder."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any, get_args

HOME = Path(__file__).resolve().parents[1]  # `scenarios` and `examples` lie here, in a checkout as links
WHERE = "a relative path begins in the folder of the scenario's file, or in the current one"
_folder: ContextVar[Path | None] = ContextVar(
    "folder in which the files of a scenario are sought", default=None
)


@contextmanager
def beside(folder: Path) -> Iterator[None]:
    """Seek the files that a scenario names in this folder, and then in the current one."""
    before = _folder.set(folder)
    try:
        yield
    finally:
        _folder.reset(before)


def located(value: Any, kind: Any) -> Any:
    """Return the whole path of a file that a scenario names, so that scenario.yaml can be loaded from anywhere.

    Left as they are: what is no path, files that are not there, and those that come with edgefl.
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
