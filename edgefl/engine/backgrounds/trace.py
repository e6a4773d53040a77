"""A recorded load, read from a table of time steps for all cells or for individual cells."""

import math
from bisect import bisect_right
from collections.abc import Collection
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from pydantic import Field, field_validator

from edgefl.channel.tdd import Direction
from edgefl.config import foreign_files, shipped
from edgefl.engine.backgrounds import Background
from edgefl.engine.backgrounds._table import PLACE, READABLE, LoadSteps, steps_of
from edgefl.errors import EdgeflError


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

    def _steps_of(self, cell: int) -> LoadSteps | None:
        steps = self._steps
        return steps.get(cell, steps.get(None))

    @property
    def _steps(self) -> dict[int | None, LoadSteps]:
        path = shipped.data(self.path)
        return _read(path, foreign_files.stamp(path, *PLACE))


@lru_cache(maxsize=4)
def _read(path: Path, stamp: tuple[Path, int, int]) -> dict[int | None, LoadSteps]:
    """Read the load steps of a file; a file that has changed is read again."""
    return steps_of(path)
