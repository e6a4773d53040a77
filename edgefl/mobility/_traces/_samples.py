"""Keep, reject or skip the samples of a trace while its files are read."""

import math
import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgefl.config.clock import date_of, epoch_s
from edgefl.config.table_files import decimal_comma
from edgefl.errors import EdgeflError, clipped
from edgefl.places.plane import FARTHEST_DEG

MOST_M = 1e8  # largest coordinate, more than twice the Earth's circumference
# A gap counts as an absence if it exceeds the usual interval between samples by this factor. LISTED: files that list
# all present devices at each time step; LOGGED: logs, in which ten losses in a row are rare even if half of the
# samples are lost; WAYPOINTS: waypoints, which are never lost
LISTED, LOGGED, WAYPOINTS = 1.5, 10.0, math.inf
NUMBERS = "numbers"


def _form_of(date: str) -> str:
    """Return the form of a date and time: a file in which only some name a zone would be read in two zones."""
    zoned = not {"Z", "z", "+", "-"}.isdisjoint(date.strip()[len("2026-01-05") :])
    return "dates with a time zone" if zoned else "dates without a time zone"


@dataclass(frozen=True)
class Wanted:
    """Options that select the part of a trace to read, and specify how to read it.

    keep: how many ids to keep, in the order of appearance; None for all. degrees: whether x and y are longitude
    and latitude; None if the file states it. origin: longitude and latitude of [0, 0], if known. kinds: elements of
    SUMO's files that are devices. columns: names or numbers of a table's columns. skip: whether to skip bad rows.
    """

    keep: int | None = None
    degrees: bool | None = None
    origin: tuple[float, float] | None = None
    kinds: tuple[str, ...] = ("vehicle", "person")
    columns: Mapping[Any, str | int] = field(default_factory=dict)
    skip: bool = False


class Recorded(NamedTuple):
    """A device of a trace, with its id, kind (SUMO's vehicle or person, row, track, ...), and type or ''."""

    id: str
    kind: str
    type: str


class BadRow(EdgeflError):
    """An error in one row of a trace; the row may be skipped."""


class Samples:
    """The recorded samples of a trace, by device."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.degrees = wanted.degrees
        self.devices: list[Recorded] = []  # in order of first appearance; the index is the device's number
        self.rows: list[array[float]] = []  # per device kept: t, x, y, t, x, y, ...
        self.lost: list[float] = []  # LISTED, LOGGED or WAYPOINTS, by the format of each device's file
        # of each file that lists all present devices at each time step: the steps' times, and the listed devices
        self._steps: list[tuple[array[float], set[int]]] = []
        self.skipped = 0  # number of rows
        self.left_out = 0  # number of rows of devices that are not kept
        self.first_skipped = ""
        self.nameless = ""  # error message about a table without a column of ids
        self._path = Path()
        self.name = ""  # id of the only device of a file without ids
        self._numbers: dict[tuple[str, str], int] = {}
        self._form, self.dated = "", False  # form of the times read so far, and whether they are dates
        self._late: dict[int, int] = {}  # device -> number of rows that follow a row with a later time

    def begin(self, path: Path, name: str) -> None:
        """Begin a new file; `name` is the device's id if the file has no ids."""
        self._path, self.name = path, name
        self._steps.append((array("d"), set()))

    def in_degrees(self, degrees: bool) -> None:
        """Set whether the current file's coordinates are degrees, according to its format.

        Raises:
            EdgeflError: the scenario declares the opposite, or earlier files are in the other unit.
        """
        if self.wanted.degrees not in (None, degrees):
            found, declared = "degrees", "geo: false declares metres"
            if not degrees:
                found, declared = "metres", "geo: true declares degrees"
            raise EdgeflError(
                f"{self._path}: is in {found} by its format or its columns' names, but {declared}; leave"
                " geo out, or name the columns of x and y in devices.mobility.columns",
                ("devices", "mobility", "geo"),
            )
        if self.rows and degrees != bool(self.degrees):
            raise EdgeflError(
                f"{self._path}: is in {'degrees' if degrees else 'metres'}, unlike the files before it; use one unit"
            )
        self.degrees = degrees

    def add(
        self,
        line: int,
        kind: str,
        id_: str,
        t: float,
        x: float,
        y: float,
        *,
        lost: float = LOGGED,
        type_: str = "",
    ) -> None:
        """Add a device's sample; devices of different kinds may share an id.

        Rows of logs may come in any order, since `complete` sorts them. In other formats, and in tables without ids,
        a device's times must increase: there, an earlier time is a sign of another device, or of a damaged file.

        Raises:
            BadRow: the time is not allowed, or no place on Earth has these coordinates.
        """
        number = self._numbers.get((kind, id_), -1)
        if number >= len(self.rows):
            self.left_out += 1
            return
        if self.degrees:
            self._check_degrees(line, id_, x, y)
        elif not (abs(x) <= MOST_M and abs(y) <= MOST_M):
            raise self.bad_row(
                line,
                f"'{clipped(id_)}' is at ({x:g}, {y:g}) m, but at most {MOST_M:g} m from the origin are allowed;"
                f" correct its coordinates{_scaled_degrees(x, y)}",
            )
        if number < 0:
            number = self._numbers[kind, id_] = len(self.devices)
            self.devices.append(Recorded(id_, kind, type_))
            self._check_skipped()
            if self.wanted.keep is None or number < self.wanted.keep:
                self.rows.append(array("d", (t, x, y)))
                self.lost.append(lost)
                self._steps[-1][1].add(number)
            else:
                self.left_out += 1
            return
        row = self.rows[number]
        if t < row[-3] and lost == LOGGED and not self.nameless:
            self._late[number] = self._late.get(number, 0) + 1
        elif t <= row[-3]:
            what = "twice" if t == row[-3] else f"after {self.shown(row[-3])}"
            if self.nameless:
                # without `bad_rows: skip` this is no bad row: skipping such rows would drop devices
                raise (self.bad_row if self.wanted.skip else self.error)(
                    line,
                    f"has the time {self.shown(t)} {what}, but {self.nameless}, so the file is one device; name the"
                    " column of ids with devices.mobility.columns: {id: NAME}, or sort the rows by time",
                )
            if t == row[-3]:
                raise self.bad_row(line, self._twice(id_, t))
            raise self.bad_row(
                line, f"'{clipped(id_)}' has the time {self.shown(t)} {what}; sort its samples by time"
            )
        row.extend((t, x, y))
        if lost == LISTED:
            self._steps[-1][1].add(number)

    @property
    def span_s(self) -> tuple[float, float]:
        """The times of the first and the last sample."""
        return min(row[0] for row in self.rows), max(row[-3] for row in self.rows)

    def step(self, time_s: float) -> None:
        """Add a time step, at which the file lists all present devices, if any."""
        steps, _ = self._steps[-1]
        if not steps or time_s != steps[-1]:
            steps.append(time_s)

    def listings(self) -> list[tuple[list[int], np.ndarray]]:
        """Return groups of devices, each with the ascending times of all time steps of the files that list them."""
        files: dict[int, list[int]] = {}
        for file, (steps, listed) in enumerate(self._steps):
            for number in sorted(listed) if steps else ():
                files.setdefault(number, []).append(file)
        groups: dict[tuple[int, ...], list[int]] = {}
        for number, those in files.items():
            groups.setdefault(tuple(those), []).append(number)
        return [
            (numbers, np.unique(np.concatenate([self._steps[file][0] for file in those])))
            for those, numbers in groups.items()
        ]

    def shown(self, time_s: float) -> str:
        """Format a time as the trace does, as a date or in seconds."""
        return date_of(time_s) if self.dated else f"{time_s:.10g} s"

    def _twice(self, id_: str, time_s: float) -> str:
        return f"'{clipped(id_)}' has the time {self.shown(time_s)} twice; keep one sample per time"

    def complete(self, path: Path) -> None:
        """Sort the rows of devices that do not follow each other in time.

        Raises:
            EdgeflError: a device has two rows with the same time, and the trace does not allow bad rows.
        """
        for number in self._late:
            rows = np.frombuffer(self.rows[number]).reshape(-1, 3)
            rows = rows[np.argsort(rows[:, 0], kind="stable")]
            again = np.append(False, rows[1:, 0] == rows[:-1, 0])
            for time_s in rows[again, 0].tolist():
                self.skip(BadRow(f"{path}: {self._twice(self.devices[number].id, time_s)}"))
            self.rows[number] = array("d", rows[~again].tobytes())

    def notes(self, path: Path) -> Iterator[str]:
        """Yield notes on rows that were skipped or sorted, and on tables without ids."""
        total = sum(map(len, self.rows)) // 3 + self.left_out + self.skipped
        if self.skipped:
            yield f"{path}: bad rows skipped: {self.skipped:,} of {total:,}; the first is {self.first_skipped}"
        if self._late:
            yield (
                f"{path}: rows sorted by time: {sum(self._late.values()):,} of {total:,} follow a later row of their"
                " device; if a device's times begin again, give each recording its own id"
            )
        if self.nameless:
            yield (
                f"{path}: {self.nameless}, so each file is one device; name the column of ids in"
                " devices.mobility.columns if there is one"
            )

    def _check_degrees(self, line: int, id_: str, lon: float, lat: float) -> None:
        if not (abs(lon) <= 360 and abs(lat) <= 90):
            raise self.bad_row(
                line,
                f"{_shown(id_, lon, lat)}, not a place on Earth; check whether the two are swapped or not in degrees"
                f"{_scaled_degrees(lon, lat)}",
            )
        if self.wanted.origin is None:
            return
        lon0, lat0 = self.wanted.origin
        if abs((lon - lon0 + 180) % 360 - 180) > FARTHEST_DEG or abs(lat - lat0) > FARTHEST_DEG:
            raise self.bad_row(
                line,
                f"{_shown(id_, lon, lat)}, more than {FARTHEST_DEG:g} degrees from origin_lon_lat"
                f" [{lon0:g}, {lat0:g}]; check origin_lon_lat, and the order of longitude and latitude",
            )

    def number(self, line: int, name: str, text: Any, remedy: str) -> float:
        """Return the finite number in a cell.

        Raises:
            BadRow: the cell does not contain a finite number; the message names the line and the remedy.
        """
        try:
            value = float(text)
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            wrong = "is missing" if text is None else f"holds '{clipped(str(text))}', not a number"
            raise self.bad_row(line, f"{name} {wrong}; {remedy}{decimal_comma(text)}")
        return value

    def time_s(self, line: int, name: str, text: Any) -> float:
        """Return the time in a cell of the table: a number, or the seconds since 1970 of a date and time.

        Raises:
            BadRow: the cell has neither form, or another form than earlier rows: number, date, or date with a zone.
        """
        try:
            value, form = float(text), NUMBERS
        except (TypeError, ValueError):
            try:
                value, form = epoch_s(str(text)), _form_of(str(text))
            except (ValueError, OverflowError):
                value, form = math.nan, ""
        if math.isfinite(value) and form == self._form:
            return value
        shown = f"{name} is missing" if text is None else f"{name} holds '{clipped(str(text))}'"
        if not math.isfinite(value):
            alone = "; the date must be in the same cell" if re.match(r"\s*\d\d?:\d\d", str(text)) else ""
            raise self.bad_row(
                line,
                f"{shown}, not a time; write a number, 12.5 for example, or a date, 2026-01-05T07:30:00Z"
                f"{alone}{decimal_comma(text)}",
            )
        if self._form:
            raise self.bad_row(line, f"{shown}, but earlier rows have {self._form}; use one form throughout")
        self._form, self.dated = form, form != NUMBERS
        return value

    def bad_row(self, line: int, message: str) -> BadRow:
        """Return the error about a row."""
        return BadRow(f"{self._path}:{line}: {message}")

    def error(self, line: int, message: str) -> EdgeflError:
        """Return the error about a line without which the file cannot be read."""
        return EdgeflError(f"{self._path}:{line}: {message}")

    def skip(self, bad: BadRow) -> None:
        """Skip a bad row of the trace.

        Raises:
            EdgeflError: the trace does not allow bad rows; the message also says how to skip them.
        """
        self.skipped += 1
        self.first_skipped = self.first_skipped or str(bad)
        self._check_skipped()

    def _check_skipped(self) -> None:
        """Raise an error about a bad row if these are not allowed, but only after a good row has been read.

        If no row is good, skipping is no remedy, so that the reading of the files ends with an error without it.
        """
        if self.skipped and self.devices and not self.wanted.skip:
            raise EdgeflError(f"{self.first_skipped}; or skip such rows with bad_rows: skip")


def _shown(id_: str, lon: float, lat: float) -> str:
    return f"'{clipped(id_)}' is at longitude {lon:g}, latitude {lat:g}"


def _scaled_degrees(x: float, y: float) -> str:
    """Return the end of a message about coordinates that may be degrees times 1e7, as Google writes them."""
    if x.is_integer() and y.is_integer() and max(abs(x), abs(y)) >= 1e6:
        return "; whole numbers as large as these are often degrees times 1e7 or 1e6: if so, divide them"
    return ""
