"""Read a table of loads from CSV or Parquet, and check each row."""

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from edgefl.channel.tdd import Direction
from edgefl.config import table_files
from edgefl.errors import EdgeflError, quoted

PLACE = ("radio", "background", "path")
READABLE = (".csv", ".parquet")
LOADS: dict[str, Direction] = {"uplink_load": "uplink", "downlink_load": "downlink"}
COLUMNS = ("time_s", "cell", *LOADS)
ALL = "all"


@dataclass
class LoadSteps:
    """The loads of a cell over time; each load holds from its time until the next."""

    times_s: list[float] = field(default_factory=list)
    loads: dict[Direction, list[float]] = field(default_factory=lambda: {"uplink": [], "downlink": []})

    @property
    def ends_s(self) -> float:
        """End of the last step, which lasts as long as the step before it; inf for a single step."""
        return 2 * self.times_s[-1] - self.times_s[-2] if len(self.times_s) > 1 else math.inf


def steps_of(path: Path) -> dict[int | None, LoadSteps]:
    """Read a table into load steps by cell; the key None stands for all cells without rows of their own.

    Raises:
        EdgeflError: the table is faulty; the message names file, line and remedy.
    """
    steps_of: dict[int | None, LoadSteps] = {}
    table = table_files.Table(path, *PLACE)
    _check_names(table)
    for line, cells in table.rows:
        row = dict(zip(table.names, cells, strict=True))
        cell = _cell(table, line, row.get("cell"))
        steps = steps_of.setdefault(cell, LoadSteps())
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
