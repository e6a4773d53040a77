"""The run directory: the contract between edgefl and everything that reads it.

Tables are CSV, appended and flushed each round, so that a killed process leaves readable files; run.json
says `running` until the run is complete.
"""

import csv
import dataclasses
import itertools
import json
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

import numpy as np

import edgefl
from edgefl.engine.records import DeviceRound, Event, LedgerRow, Round, Session
from edgefl.errors import EdgeflError
from edgefl.scenario import Scenario, dump

SCHEMA_VERSION = 1
TABLES: dict[type, str] = {
    Round: "rounds.csv",
    DeviceRound: "devices.csv",
    Event: "events.csv",
    Session: "sessions.csv",
    LedgerRow: "ledger.csv",
}
# Times are multiples of a slot plus compute times; sums of floats carry noise far below a nanosecond.
TIME_DIGITS = 9


def fresh_directory(path: Path) -> Path:
    """Create a directory for results; an existing one must be empty.

    Raises:
        EdgeflError: it holds something, or cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()):
            raise EdgeflError(f"{path}: is not empty; choose another --out, or delete it")
        probe = path / ".writable"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be written ({error.strerror}); choose another --out") from error
    return path


def free_directory(parent: Path, name: str) -> Path:
    """`parent/name`, or `parent/name-2`, `-3` ... when that is taken: results are never overwritten."""
    path, number = parent / name, 1
    while path.exists():
        number += 1
        path = parent / f"{name}-{number}"
    return path


class RunDirectory:
    """Writes one run; use as a context manager, and call `complete` at the end."""

    def __init__(self, path: Path, scenario: Scenario, about: dict[str, Any]) -> None:
        self.path = fresh_directory(path)
        self._about: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "status": "running",
            "name": scenario.name,
            "study": None,
            "variant": None,
            "reference": None,
            "setting": {},
            "seed": scenario.seed,
            "edgefl_version": edgefl.__version__,
            "versions": {
                "python": platform.python_version(),
                **{package: version(package) for package in ("torch", "numpy", "scipy", "simpy")},
            },
            **about,
        }
        (self.path / "scenario.yaml").write_text(dump(scenario), encoding="utf-8")
        self._write_about()
        self._files: dict[type, TextIO] = {}
        self._writers: dict[type, Any] = {}
        for row_type, name in TABLES.items():
            file = (self.path / name).open("w", newline="", encoding="utf-8")
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow([field.name for field in dataclasses.fields(row_type)])
            self._files[row_type], self._writers[row_type] = file, writer
        self.flush()

    def write(self, *rows: Any) -> None:
        """Append rows, each to the table of its type."""
        for row in rows:
            self._writers[type(row)].writerow([_cell(k, v) for k, v in vars(row).items()])

    def write_columns(self, row_type: type, *, further: Any = None, **columns: Any) -> None:
        """Append many rows to the table of a type: an array [rows] per column, or one value for all of them.

        Raises:
            KeyError: the type has no such column.
            TypeError: a column without default is missing.
        """
        if unknown := columns.keys() - {field.name for field in dataclasses.fields(row_type)}:
            raise KeyError(f"{row_type.__name__} has no {', '.join(sorted(unknown))}")
        cells = [_cells(name, value) for name, value in vars(row_type(**columns)).items()]
        self._writers[row_type].writerows(zip(*cells, strict=False))

    def flush(self) -> None:
        """Hand everything written so far to the operating system."""
        for file in self._files.values():
            file.flush()

    def complete(self, **about: Any) -> None:
        """Mark the run as a result."""
        self.flush()
        self._about |= {"status": "completed", **about}
        self._write_about()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        if error is not None:
            self._about |= {"status": "failed", "error": str(error) or type(error).__name__}
            self._write_about()

    def _write_about(self) -> None:
        # replaced in one step: a reader never sees half of it
        draft = self.path / "run.json.part"
        draft.write_text(json.dumps(self._about, indent=2) + "\n", encoding="utf-8")
        draft.replace(self.path / "run.json")


def _cells(name: str, value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        return [_cell(name, one) for one in value]
    if not isinstance(value, np.ndarray):
        return itertools.repeat(_cell(name, value))
    return (value.round(TIME_DIGITS) if name.endswith("_s") else value).tolist()


def _cell(name: str, value: Any) -> Any:
    if value is None:
        return ""
    return round(value, TIME_DIGITS) if name.endswith("_s") else value
