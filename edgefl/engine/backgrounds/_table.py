"""Read a table of loads from CSV or Parquet, checked row by row."""

import csv
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgefl.channel.tdd import Direction
from edgefl.config import foreign_files
from edgefl.errors import EdgeflError, about, quoted

PLACE = ("radio", "background", "path")
READABLE = (".csv", ".parquet")
LOADS: dict[str, Direction] = {"uplink_load": "uplink", "downlink_load": "downlink"}
COLUMNS = ("time_s", "cell", *LOADS)
ALL = "all"


@dataclass
class LoadSteps:
    """The loads of a cell; each holds from its time until the next."""

    times_s: list[float] = field(default_factory=list)
    loads: dict[Direction, list[float]] = field(default_factory=lambda: {"uplink": [], "downlink": []})

    @property
    def ends_s(self) -> float:
        """Time at which the last step ends, which lasts as long as the one before; inf for a single step."""
        return 2 * self.times_s[-1] - self.times_s[-2] if len(self.times_s) > 1 else math.inf


def steps_of(path: Path) -> dict[int | None, LoadSteps]:
    """Read a table into steps by cell; the key None has the steps of cells without rows of their own.

    Raises:
        EdgeflError: names file, line and remedy.
    """
    steps_of: dict[int | None, LoadSteps] = {}
    for line, row in _csv_rows(path) if path.suffix == ".csv" else _parquet_rows(path):
        cell = _cell(path, line, row.get("cell"))
        steps = steps_of.setdefault(cell, LoadSteps())
        time_s = _number(path, line, "time_s", row["time_s"])
        of = "all cells" if cell is None else f"cell {cell}"
        if not steps.times_s and time_s != 0:
            raise _error(path, line, f"{of} begins at {time_s:g} s: its first row must be at 0")
        if steps.times_s and time_s <= steps.times_s[-1]:
            raise _error(
                path, line, f"{of} has {time_s:g} s after {steps.times_s[-1]:g} s: sort its rows by time"
            )
        steps.times_s.append(time_s)
        for name, direction in LOADS.items():
            load = _number(path, line, name, row[name]) if name in row else 0.0
            if not 0 <= load <= 1:
                raise _error(path, line, f"{name} is {load:g}: a load is a share of time, 0 to 1")
            steps.loads[direction].append(load)
    if not steps_of:
        raise EdgeflError(f"{path}: has no rows; write at least one", PLACE)
    return steps_of


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        # utf-8-sig: spreadsheets write a byte-order mark
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = csv.reader(foreign_files.lines(file))
            names = [name.strip() for name in next(lines, [])]
            _check_names(path, names)
            for cells in lines:
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise _error(
                        path, lines.line_num, f"{len(cells)} cells but {len(names)} columns: make them equal"
                    )
                yield lines.line_num, dict(zip(names, cells, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EdgeflError(f"{path}: cannot be read as CSV ({error}); check the file", PLACE) from error


def _parquet_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        with about(*PLACE):
            table = foreign_files.ForeignParquet(path)
        _check_names(path, table.names)
        # the header counts as a line, as in a CSV table
        for line, values in enumerate(table.rows(table.names), start=2):
            yield line, dict(zip(table.names, values, strict=True))
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be read as Parquet ({error}); check the file", PLACE) from error


def _check_names(path: Path, names: Sequence[str]) -> None:
    wrong = [name for name in names if name not in COLUMNS or names.count(name) > 1]
    if wrong or "time_s" not in names or not set(LOADS) & set(names):
        what = (
            f"has the column {quoted(wrong[0])}" if wrong else f"has the columns {', '.join(names) or 'none'}"
        )
        raise _error(
            path,
            1,
            f"{what}; write time_s, uplink_load or downlink_load or both, and optionally cell, each once",
        )


def _cell(path: Path, line: int, value: Any) -> int | None:
    text = ALL if value is None else str(value).strip()
    if text in ("", ALL):
        return None
    if not (text.isascii() and text.isdigit()):
        raise _error(path, line, f"cell is {quoted(value)}: write its number or {ALL}")
    return int(text)


def _number(path: Path, line: int, name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if isinstance(value, bool) or not math.isfinite(number):
        raise _error(path, line, f"{name} is {quoted(value)}: write a number")
    return number


def _error(path: Path, line: int, message: str) -> EdgeflError:
    return EdgeflError(f"{path}:{line}: {message}", PLACE)
