"""Recorded paths as a mobility model: tables, or floating-car data of SUMO."""

from pathlib import Path
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from edgefl.config import shipped
from edgefl.errors import EdgeflError, about, refused
from edgefl.mobility import Coordinate, Mobility, Movement
from edgefl.mobility._trace_files import READABLE, Samples, read
from edgefl.rng import Streams

PLACE = ("devices", "mobility", "path")


class Trace(Mobility):
    """Devices move as recorded in a file, along straight lines between its samples.

    A device is absent before its first and after its last sample, and within gaps longer than max_gap_s. Ids become
    devices 0, 1, ... in order of first appearance, and `devices.count` must be their number; with `surplus: ignore`
    it may be smaller, and later ids are left out. The dropped positions and the seed are ignored. After the last
    sample of the trace all devices are absent.

    CSV: a header with the columns t, id, x, y (s and m; others are ignored), separated by commas or semicolons.
    SUMO: the file of `sumo --fcd-output`, .xml or (since SUMO 1.24) .csv; its vehicles and persons are devices (a
    person in a vehicle is where the vehicle is; `kinds` chooses). A vehicle and a person with the same id are two
    devices. Both may be compressed (.gz). Parquet: the same columns as CSV; needs pyarrow. Times of a device must
    rise. Files are read as streams; 24 bytes per sample stay in memory, and five times as many are needed while
    reading.

    Degrees: longitude and latitude, in the columns lon and lat instead of x and y or, with geo: true
    (--fcd-output.geo), in x and y, become metres around the scenario's origin_lon_lat by a transverse Mercator
    projection; at 10 km from the origin's meridian distances are too long by a factor of 1 + 1.2e-6.

    A position in the simulation is scale x (position - origin_m), its time time_scale x (time - begin_s). The Doppler
    shift is that of a device's mean speed: its path length over the time for which it is present.

    Source of the format: https://sumo.dlr.de/docs/Simulation/Output/FCDOutput.html and TabularOutputs.html. Left out:
    heights, the recorded speeds and angles.
    """

    own_numbers: ClassVar[bool] = True

    path: Path = Field(
        description="the file: .csv or SUMO's .xml, also .gz, or .parquet; relative to the scenario's file"
    )
    geo: bool = Field(False, description="x and y are longitude and latitude, degrees")
    origin_m: tuple[Coordinate, Coordinate] = Field(
        (0.0, 0.0), description="[x, y] of the base station in the trace's coordinates"
    )
    scale: float = Field(1.0, ge=1e-6, le=1e6, description="metres per unit of length of the trace")
    begin_s: float | None = Field(
        None,
        ge=-1e12,
        le=1e12,
        description="time of the trace at which the simulation begins; if left out, its first sample",
    )
    time_scale: float = Field(1.0, ge=1e-6, le=1e6, description="seconds per unit of time of the trace")
    max_gap_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="simulated time between samples beyond which a device is absent; null: never",
    )
    kinds: tuple[Literal["vehicle", "person", "container"], ...] = Field(
        ("vehicle", "person"), description="elements of SUMO's file that are devices"
    )
    surplus: Literal["error", "ignore"] = Field(
        "error", description="ids beyond devices.count are an error, or ignored"
    )

    @field_validator("path")
    @classmethod
    def _readable(cls, path: Path) -> Path:
        if not path.name.endswith(READABLE):
            raise ValueError(f"{path} is of no known kind: use a name that ends in {', '.join(READABLE)}")
        return path

    @field_validator("kinds")
    @classmethod
    def _some(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if not kinds:
            raise ValueError("is empty: name vehicle, person or container")
        return kinds

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        count = len(positions_m)
        with about(*PLACE):
            samples = read(shipped.data(self.path), self.kinds, keep=count, degrees=self.geo)
            if samples.degrees:
                self.places.on_earth()  # raises an error if the origin is missing
        traced = len(samples.ids)
        if traced < count or (traced > count and self.surplus == "error"):
            ignoring = f", or surplus: ignore to use the first {count}" if traced > count else ""
            raise EdgeflError(
                f"{count} devices, but {self.path} has {traced}; set devices.count: {traced}{ignoring}",
                ("devices", "count"),
            )
        rows, counts = self._in_simulation(samples)
        del samples  # a large second copy of the rows
        return _Recorded(rows, counts, self.max_gap_s)

    def _in_simulation(self, samples: Samples) -> tuple[np.ndarray, np.ndarray]:
        """Return [samples, 3] simulated t, x, y, device after device, and [devices] the number of samples of each."""
        rows = np.concatenate([np.frombuffer(row) for row in samples.rows]).reshape(-1, 3)
        counts = np.array([len(row) // 3 for row in samples.rows])
        if samples.degrees:
            with refused(*PLACE):
                rows[:, 1:] = self.places.on_earth().to_m(rows[:, 1:])
        begin_s = rows[:, 0].min() if self.begin_s is None else self.begin_s
        rows[:, 0] = self.time_scale * (rows[:, 0] - begin_s)
        rows[:, 1:] = self.scale * (rows[:, 1:] - self.origin_m)
        if rows[:, 0].max() < 0:
            raise EdgeflError(
                f"{self.begin_s:g} s is after the last sample of {self.path}; begin earlier",
                ("devices", "mobility", "begin_s"),
            )
        return rows, counts


class _Recorded:
    """Samples of all devices in one table, and the current segment of each device.

    Args:
        samples: [samples, 3] t, x, y, device after device, with rising times for each.
        counts: [devices] number of samples of each, at least one.
        max_gap_s: time between samples beyond which a device is absent, or None.
    """

    moves = True

    def __init__(self, samples: np.ndarray, counts: np.ndarray, max_gap_s: float | None) -> None:
        devices = len(counts)
        owner = np.repeat(np.arange(devices), counts)
        firsts = np.cumsum(counts) - counts
        span_s = np.diff(samples[:, 0])
        present = owner[1:] == owner[:-1]
        if max_gap_s is not None:
            present &= span_s <= max_gap_s
        self._speeds_m_s = _mean_speeds_m_s(samples, owner, present, devices)

        # A row without a place starts each absence: before a first sample, and right after a last one
        before = np.full((devices, 3), np.nan)
        before[:, 0] = np.minimum(samples[firsts, 0] - 1.0, -1.0)
        lasts = np.flatnonzero(np.append(~present, True))
        after = np.full((len(lasts), 3), np.nan)
        after[:, 0] = np.nextafter(samples[lasts, 0], np.inf)
        rows = np.insert(samples, np.append(lasts + 1, firsts), np.concatenate([after, before]), axis=0)
        sizes = counts + np.bincount(owner[lasts], minlength=devices) + 1
        self._ends = np.cumsum(sizes)  # one past each device's last row
        self._begins = self._ends - sizes
        self._times_s = np.append(rows[:, 0], np.inf)
        self._places_m = np.append(rows[:, 1:].T, [[np.nan], [np.nan]], axis=1)

        # the row of each device at the last call, and the segment that begins there
        self._row = self._begins.copy()
        self._start_s = np.full(devices, np.inf)
        self._until_s = np.full(devices, np.inf)
        self._from_m = np.zeros((2, devices))
        self._velocity_m_s = np.zeros((2, devices))

    def positions_m(self, time_s: float) -> np.ndarray:
        if not 0 <= time_s < np.inf:
            raise ValueError(f"time_s must be >= 0 and finite, got {time_s}")
        stale = np.flatnonzero((time_s < self._start_s) | (time_s >= self._until_s))
        if len(stale):
            self._enter(stale, time_s)
        passed_s = time_s - self._start_s
        positions_m = np.empty((len(passed_s), 2))
        for axis in range(2):
            np.multiply(self._velocity_m_s[axis], passed_s, out=positions_m[:, axis])
            positions_m[:, axis] += self._from_m[axis]
        return positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return self._speeds_m_s

    def nearest_m(self) -> float:
        """Return the smallest distance of any device from [0, 0], m."""
        from_m, way_m = self._places_m[:, :-1], np.diff(self._places_m)
        square = (way_m**2).sum(axis=0)
        # a row without a place separates devices and absences, and ends a segment
        along = np.divide(-(from_m * way_m).sum(axis=0), square, out=np.zeros_like(square), where=square > 0)
        foot_m = from_m + np.clip(along, 0.0, 1.0) * way_m
        return float(
            min(np.nanmin(np.hypot(*places_m), initial=np.inf) for places_m in (foot_m, self._places_m))
        )

    def _enter(self, ids: np.ndarray, time_s: float) -> None:
        """Find the segments of these devices at a time, by bisection: usually the current or the next one."""
        row, begin, end = self._row[ids], self._begins[ids], self._ends[ids]
        two_on = np.minimum(row + 2, end)
        low = np.where(self._times_s[row] <= time_s, row, begin)
        high = np.where(self._times_s[two_on] > time_s, two_on, end)
        while (high - low > 1).any():
            middle = (low + high) // 2
            reached = self._times_s[middle] <= time_s
            low, high = np.where(reached, middle, low), np.where(reached, high, middle)
        start_s = self._times_s[low]
        until_s = np.where(low + 1 < end, self._times_s[low + 1], np.inf)
        from_m = self._places_m[:, low]
        velocity_m_s = (self._places_m[:, low + 1] - from_m) / (until_s - start_s)
        self._row[ids], self._start_s[ids], self._until_s[ids] = low, start_s, until_s
        self._from_m[:, ids] = from_m
        # a segment before an absence has no velocity: the device stays at its last place until it is absent
        self._velocity_m_s[:, ids] = np.nan_to_num(velocity_m_s)


def _mean_speeds_m_s(samples: np.ndarray, owner: np.ndarray, present: np.ndarray, devices: int) -> np.ndarray:
    """Return [devices] path length over time between samples with the device present; 0 with one sample only."""
    ways_m, times_s = np.hypot(*np.diff(samples[:, 1:], axis=0).T), np.diff(samples[:, 0])
    way_m = np.bincount(owner[:-1], present * ways_m, minlength=devices)
    time_s = np.bincount(owner[:-1], present * times_s, minlength=devices)
    return np.divide(way_m, time_s, out=np.zeros(devices), where=time_s > 0)
