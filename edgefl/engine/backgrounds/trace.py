"""A recorded load, read from a table of time steps for all cells or for individual cells."""

import math
from bisect import bisect_right
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field, field_validator

from edgefl.channel.tdd import Direction
from edgefl.config import foreign_files, shipped, table_files
from edgefl.engine.backgrounds import Background
from edgefl.errors import EdgeflError, quoted

PLACE = ("radio", "background", "path")
READABLE = (".csv", ".parquet")
LOADS: dict[str, Direction] = {"uplink_load": "uplink", "downlink_load": "downlink"}
COLUMNS = ("time_s", "cell", *LOADS)
ALL = "all"


@dataclass
class _Steps:
    """The loads of a cell over time; each load holds from its time until the next."""

    times_s: list[float] = field(default_factory=list)
    loads: dict[Direction, list[float]] = field(default_factory=lambda: {"uplink": [], "downlink": []})

    @property
    def ends_s(self) -> float:
        """End of the last step, which lasts as long as the step before it; inf for a single step."""
        return 2 * self.times_s[-1] - self.times_s[-2] if len(self.times_s) > 1 else math.inf


class LoadTrace(Background):
    """A load read from a file, such as the resource block usage that a base station reports every 15 minutes.

    The file is a CSV or Parquet table with the columns `time_s`, `uplink_load` and `downlink_load` (0 to 1; if one of
    the two is missing, it is 0), and optionally `cell`:

        time_s,cell,uplink_load,downlink_load
        0,all,0.1,0.3
        900,all,0.2,0.6
        0,4,0.5,0.9

    A row holds from its time until the next row of its cell, without interpolation, since a counter reports the mean
    over its interval. Rows of the cell `all`, or of a table without the column `cell`, apply to every cell without
    its own rows. Each cell's rows begin at time 0, and their times increase. The last row lasts as long as the one
    before it. After that, the last load continues, and a note at the end of the run says so.

    While the load is 1, files queue up until it falls. Source of the format: PRB usage, 3GPP TS 28.552, 5.1.1.2. Left
    out: changes of file sizes and numbers of users over the day.
    """

    path: Path = Field(description="path of the .csv or .parquet table, relative to the scenario's file")
    repeat: ClassVar[bool] = False  # a subclass sets this to True to repeat the table

    @field_validator("path")
    @classmethod
    def _readable(cls, path: Path) -> Path:
        if path.suffix not in READABLE:
            raise ValueError(
                f"{path} has an unknown file type: use a name that ends in {', '.join(READABLE)}"
            )
        return path

    def load(self, direction: Direction, cell: int, time_s: float) -> tuple[float, float]:
        steps = self._steps_of(cell)
        if steps is None or not any(steps.loads[direction]):
            return 0.0, math.inf
        begun_s, period_s = 0.0, steps.ends_s
        if self.repeat and period_s < math.inf:
            begun_s = period_s * math.floor(time_s / period_s)
        row = bisect_right(steps.times_s, time_s - begun_s) - 1
        if row + 1 < len(steps.times_s):
            until_s = begun_s + steps.times_s[row + 1]
        else:
            until_s = begun_s + period_s if self.repeat else math.inf
        # the end must be later than time_s even if the sum is rounded
        return steps.loads[direction][row], max(until_s, math.nextafter(time_s, math.inf))

    def check(self, cells: Collection[int]) -> None:
        known = self._steps
        extra = sorted(cell for cell in known if cell is not None and cell not in cells)
        if extra:
            raise EdgeflError(
                f"{self.path}: has rows of cell {extra[0]}, which has no federation; leave them out", PLACE
            )
        without = [cell for cell in cells if cell not in known]
        if without and None not in known:
            raise EdgeflError(
                f"{self.path}: has no row for cell {without[0]}; write rows for cell {without[0]}, or for all",
                PLACE,
            )

    @property
    def ends_s(self) -> float | None:
        ends_s = min(steps.ends_s for steps in self._steps.values())
        return None if self.repeat or ends_s == math.inf else ends_s

    def _steps_of(self, cell: int) -> _Steps | None:
        steps = self._steps
        return steps.get(cell, steps.get(None))

    @property
    def _steps(self) -> dict[int | None, _Steps]:
        path = shipped.data(self.path)
        return _read(path, foreign_files.stamp(path, *PLACE))


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[Path, int, int]) -> dict[int | None, _Steps]:
    """Read a table into load steps by cell, and again if it has changed.

    The key None stands for all cells without rows of their own.

    Raises:
        EdgeflError: the table is faulty; the message names file, line and remedy.
    """
    steps_of: dict[int | None, _Steps] = {}
    table = table_files.Table(path, *PLACE)
    _check_names(table)
    for line, cells in table.rows:
        row = dict(zip(table.names, cells, strict=True))
        cell = _cell(table, line, row.get("cell"))
        steps = steps_of.setdefault(cell, _Steps())
        time_s = _number(table, line, "time_s", row["time_s"])
        of = "all cells" if cell is None else f"cell {cell}"
        if not steps.times_s and time_s != 0:
            raise table.error(line, f"the first row of {of} is at {time_s:g} s: it must be at 0")
        if steps.times_s and time_s <= steps.times_s[-1]:
            raise table.error(
                line, f"a row of {of} at {time_s:g} s follows {steps.times_s[-1]:g} s: sort the rows by time"
            )
        steps.times_s.append(time_s)
        for name, direction in LOADS.items():
            load = _number(table, line, name, row[name]) if name in row else 0.0
            if not 0 <= load <= 1:
                raise table.error(line, f"{name} is {load:g}: a load is a share of time, from 0 to 1")
            steps.loads[direction].append(load)
    if not steps_of:
        raise EdgeflError(f"{path}: has no rows; write at least one", PLACE)
    return steps_of


def _check_names(table: table_files.Table) -> None:
    names = table.names
    wrong = [name for name in names if name not in COLUMNS or names.count(name) > 1]
    if wrong or "time_s" not in names or not set(LOADS) & set(names):
        what = (
            f"has the column {quoted(wrong[0])}" if wrong else f"has the columns {', '.join(names) or 'none'}"
        )
        raise table.error(
            1, f"{what}; write time_s, uplink_load or downlink_load or both, and optionally cell, each once"
        )


def _cell(table: table_files.Table, line: int, value: Any) -> int | None:
    text = ALL if value is None else str(value).strip()
    if text in ("", ALL):
        return None
    if not (text.isascii() and text.isdigit()):
        raise table.error(line, f"cell is {quoted(value)}: write its number or {ALL}")
    return int(text)


def _number(table: table_files.Table, line: int, name: str, value: Any) -> float:
    number = table_files.number(value)
    if number is None:
        raise table.error(
            line, f"{name} is {quoted(value)}: write a number{table_files.decimal_comma(value)}"
        )
    return number
