"""Measured rates of devices over time, read from a table."""

import math
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.config import foreign_files, table_files
from edgefl.engine.air.layout import LayoutSettings
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.measured.settings import OTHERS, RATES, MeasuredSettings
from edgefl.errors import EdgeflError, quoted

PLACE = ("radio", "measured", "path")
MOST_BIT_S = 1e11
# peak rates of 5G, Report ITU-R M.2410
PEAKS_BIT_S: dict[Direction, float] = {"downlink": 20e9, "uplink": 10e9}
FEW_BIT_S = 1e3  # no measured link is as slow as this most of the time
# a drive test has shorter gaps, and counters of a network have whole minutes
LONG_GAP_S, MINUTE_S = 100.0, 60.0
# larger times are in milliseconds, since this many seconds after 1970 is the year 5138
MOST_S = 1e11


@dataclass(frozen=True)
class Steps:
    """Measured rates of one device; each rate holds until the next one begins.

    times_s: [rows] ascending times at which rates begin. bit_s: direction -> [rows] rates. moved: direction -> [rows]
    bits that the rates carry from the first time to each row's time. cells: [rows] number of the device's cell.
    """

    times_s: FloatArray
    bit_s: dict[Direction, FloatArray]
    moved: dict[Direction, FloatArray]
    cells: np.ndarray

    def row(self, time_s: float) -> int:
        """Return the index of the row that applies at a time."""
        return max(0, int(np.searchsorted(self.times_s, time_s, side="right")) - 1)

    def bits_at(self, direction: Direction, time_s: float) -> float:
        """Return the bits that the rates carry from the first time to a given time."""
        row = self.row(time_s)
        return float(self.moved[direction][row] + self.bit_s[direction][row] * (time_s - self.times_s[row]))

    def end_s(self, direction: Direction, from_s: float, bits: float) -> float:
        """Return the time by which a transfer that starts at from_s has sent this number of bits."""
        reached = self.bits_at(direction, from_s) + bits
        row = max(0, int(np.searchsorted(self.moved[direction], reached, side="left")) - 1)
        # this row's rate is above 0, as moved[row] < reached <= moved[row + 1], and the last row's rate is never 0
        missing = reached - self.moved[direction][row]
        return float(self.times_s[row] + missing / self.bit_s[direction][row])


@dataclass(frozen=True)
class MeasuredRates:
    """Measured rates of all devices, with the names of devices and cells in order of first appearance."""

    steps: Sequence[Steps]
    devices: Sequence[str]
    cells: Sequence[str]

    @property
    def ends_s(self) -> float:
        """Earliest time in s at which a device with several rows reaches its last row; inf without such devices."""
        return min((one.times_s[-1] for one in self.steps if len(one.times_s) > 1), default=math.inf)

    def bit_s(self, direction: Direction, devices: Sequence[int], time_s: float) -> FloatArray:
        """Return the rates [devices] at a time."""
        steps = [self.steps[device] for device in devices]
        return np.array([one.bit_s[direction][one.row(time_s)] for one in steps])

    def cells_at(self, devices: Sequence[int], time_s: float) -> np.ndarray:
        """Return the cells [devices] at a time."""
        return np.array([self.steps[device].cells[self.steps[device].row(time_s)] for device in devices])

    def changes(self) -> list[tuple[float, np.ndarray, np.ndarray]]:
        """Return (time, devices [n], new cells [n]) for each time after 0 at which devices change cells."""
        found: dict[float, list[tuple[int, int]]] = {}
        for device, one in enumerate(self.steps):
            rows = 1 + np.flatnonzero(np.diff(one.cells))
            for time_s, cell in zip(one.times_s[rows].tolist(), one.cells[rows].tolist(), strict=True):
                if time_s > 0:
                    found.setdefault(time_s, []).append((device, cell))
        return [(time_s, *np.array(found[time_s]).T) for time_s in sorted(found)]

    def doubts(self) -> Iterator[str]:
        """Yield notes on rates and times that seem to be in another unit."""
        for direction, peak_bit_s in PEAKS_BIT_S.items():
            rates_bit_s = np.concatenate([one.bit_s[direction] for one in self.steps])
            usual_bit_s = float(np.median(rates_bit_s[rates_bit_s > 0]))
            limit_bit_s, than = (FEW_BIT_S, "slower") if usual_bit_s < FEW_BIT_S else (peak_bit_s, "faster")
            if not FEW_BIT_S <= usual_bit_s <= peak_bit_s:
                yield (
                    f"radio.measured: the median {direction} rate is {usual_bit_s / 1e6:,.6g} Mbit/s, but no link is"
                    f" {than} than {limit_bit_s / 1e6:,g} Mbit/s: check the unit in the column's name"
                )
        gaps_s = np.concatenate([np.diff(one.times_s) for one in self.steps])
        usual_s = float(np.median(gaps_s)) if len(gaps_s) else 0.0
        if usual_s > LONG_GAP_S and usual_s % MINUTE_S:
            yield f"radio.measured: rows of a device are typically {usual_s:,g} s apart: times must be in seconds"

    def check(self, devices: int, layout: LayoutSettings) -> None:
        """Raise an error if the scenario and the table differ in the number of devices or cells.

        Raises:
            EdgeflError: the numbers differ; the message names the key and the number in the table.
        """
        known, wanted = len(self.devices), len(self.cells)
        if devices != known:
            raise EdgeflError(
                f"{devices} devices, but radio.measured has {known}: set devices.count: {known}",
                ("devices", "count"),
            )
        if layout.cells != wanted:
            # the first key that sets the number of cells, or the table if the scenario has no such key
            given = [key for key in ("sites", "rings", "sectors") if key in layout.model_fields_set]
            raise EdgeflError(
                f"the number of cells is {layout.cells}, but radio.measured has {wanted}: set layout.sites:"
                f" [[x, y], ...] with {wanted} places",
                ("layout", given[0]) if given else PLACE,
            )


def read(settings: MeasuredSettings, path: Path) -> MeasuredRates:
    """Read the table of measured rates at a path.

    Raises:
        EdgeflError: the table is faulty; the message names file, line and remedy.
    """
    stamp = foreign_files.stamp(path, *PLACE)
    return _read(path, tuple(settings.columns.items()), settings.begin_s, stamp)


@lru_cache(maxsize=4)
def _read(
    path: Path, columns: tuple[tuple[str, str], ...], begin_s: float | None, stamp: tuple[Path, int, int]
) -> MeasuredRates:
    """Read a table of measured rates; a file that has changed is read again."""
    table = table_files.Table(path, *PLACE)
    rows = _Rows(table, dict(columns))
    for line, cells in table.rows:
        rows.add(line, cells)
    if not rows.devices:
        raise EdgeflError(f"{path}: has no rows; write at least one", PLACE)
    return rows.rates(begin_s)


@dataclass
class _Recorded:
    times_s: "array[float]" = field(default_factory=lambda: array("d"))
    bit_s: "dict[Direction, array[float]]" = field(
        default_factory=lambda: {d: array("d") for d in DIRECTIONS}
    )
    cells: "array[int]" = field(default_factory=lambda: array("q"))
    last_line: int = 0


class _Rows:
    """The rows that have been read so far from a table of measured rates."""

    def __init__(self, table: table_files.Table, columns: dict[str, str]) -> None:
        self._table = table
        small = [name.lower() for name in table.names]

        def place(key: str, wanted: Sequence[str]) -> int:
            given = [columns[each] for each in wanted if each in columns]
            named = "" if given or key not in RATES else f"of {key} rates, such as {key}_mbit_s"
            return table.column(given or wanted, exact=bool(given), named=named)

        self._time = place("time_s", OTHERS["time_s"])
        self._rates: dict[Direction, tuple[int, float]] = {}
        for direction, units in RATES.items():
            given = [key for key in columns if key in units]
            at = place(direction, list(units))
            self._rates[direction] = at, units[given[0] if given else small[at]]
        some = {key: key in columns or bool(set(OTHERS[key]) & set(small)) for key in ("device", "cell")}
        self._device, self._cell = (place(key, OTHERS[key]) if some[key] else None for key in some)
        self.devices: dict[str, _Recorded] = {}
        self._cells: dict[str, int] = {}

    def add(self, line: int, cells: Sequence[Any]) -> None:
        device = self.devices.setdefault(self._name(line, cells, self._device), _Recorded())
        time_s = table_files.seconds(cells[self._time])
        if time_s is None or abs(time_s) >= MOST_S:
            raise self._error(
                line, self._time, cells, "write seconds, or a date such as 2026-11-26T08:00:00Z"
            )
        if device.times_s and time_s <= device.times_s[-1]:
            raise self._error(
                line,
                self._time,
                cells,
                f"is no later than the device's row in line {device.last_line}: sort by time",
            )
        device.times_s.append(time_s)
        device.last_line = line
        for direction, (at, unit) in self._rates.items():
            bit_s = table_files.number(cells[at])
            if bit_s is None or not 0 <= bit_s * unit <= MOST_BIT_S:
                raise self._error(line, at, cells, f"write a rate, 0 to {MOST_BIT_S:g} bit/s")
            device.bit_s[direction].append(bit_s * unit)
        device.cells.append(self._cells.setdefault(self._name(line, cells, self._cell), len(self._cells)))

    def rates(self, begin_s: float | None) -> MeasuredRates:
        for name, one in self.devices.items():
            for direction, (at, _) in self._rates.items():
                if not one.bit_s[direction][-1]:
                    of = f" of device {quoted(name)}" if self._device is not None else ""
                    raise self._table.error(
                        one.last_line,
                        f"{self._table.names[at]} is 0 in the last row{of}, and would stay 0 to the end of the run,"
                        " so that no transfer could end; add a row with a rate above 0, or remove these last rows",
                    )
        first_s = min(one.times_s[0] for one in self.devices.values()) if begin_s is None else begin_s
        return MeasuredRates(
            [_steps(one, first_s) for one in self.devices.values()], list(self.devices), list(self._cells)
        )

    def _name(self, line: int, cells: Sequence[Any], at: int | None) -> str:
        if at is None:
            return ""
        name = "" if cells[at] is None else str(cells[at]).strip()
        if not name:
            raise self._error(line, at, cells, "write a name or number")
        return name

    def _error(self, line: int, at: int, cells: Sequence[Any], remedy: str) -> EdgeflError:
        comma = table_files.decimal_comma(cells[at])
        return self._table.error(line, f"{self._table.names[at]} is {quoted(cells[at])}: {remedy}{comma}")


def _steps(recorded: _Recorded, first_s: float) -> Steps:
    times_s = np.frombuffer(recorded.times_s) - first_s
    bit_s = {direction: np.frombuffer(rates) for direction, rates in recorded.bit_s.items()}
    moved = {
        direction: np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times_s))])
        for direction, rates in bit_s.items()
    }
    return Steps(times_s, bit_s, moved, np.frombuffer(recorded.cells, dtype=np.int64))
