"""Samples of a trace while it is read: keep or reject them."""

import math
from array import array
from pathlib import Path

from edgefl.errors import EdgeflError

MOST_M = 1e8  # more than twice around the Earth


class Samples:
    """The recorded samples of a trace, by device.

    Args:
        keep: number of ids to keep samples of, the first ones; later ids are only counted.
        degrees: whether x and y are longitude and latitude; also set by a table with such a header.
    """

    def __init__(self, path: Path, keep: int, degrees: bool = False) -> None:
        self.degrees = degrees
        self.ids: list[str] = []  # in order of first appearance; the index is the device's number
        self.rows: list[array[float]] = []  # per device kept: t, x, y, t, x, y, ...
        self._path = path
        self._keep = keep
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, line: int, kind: str, id_: str, t: float, x: float, y: float) -> None:
        """Add a sample of a device, later than its earlier ones. The same id in two kinds is two devices."""
        number = self._numbers.setdefault((kind, id_), len(self.ids))
        if number == len(self.ids):
            self.ids.append(id_)
            if number < self._keep:
                self.rows.append(array("d"))
        if number >= self._keep:
            return
        row = self.rows[number]
        if row and t <= row[-3]:
            what = "twice" if t == row[-3] else f"after {row[-3]:g} s"
            raise self.error(
                line, f"'{id_}' has {t:g} s {what}; sort its samples by time and keep one for each time"
            )
        if not (abs(x) <= MOST_M and abs(y) <= MOST_M):
            raise self.error(
                line,
                f"'{id_}' is at ({x:g}, {y:g}) m, but at most {MOST_M:g} m from the origin are allowed; correct its"
                " coordinates",
            )
        row.extend((t, x, y))

    def number(self, line: int, name: str, text: str | None, remedy: str) -> float:
        """Return the finite number in a cell.

        Raises:
            EdgeflError: the message names the line and the remedy.
        """
        try:
            value = float(text)  # type: ignore[arg-type]  # None is an error like any other
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            wrong = "is missing" if text is None else f"holds '{text}', not a number"
            raise self.error(line, f"{name} {wrong}; {remedy}")
        return value

    def error(self, line: int, message: str) -> EdgeflError:
        return EdgeflError(f"{self._path}:{line}: {message}")
