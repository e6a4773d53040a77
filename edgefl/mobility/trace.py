"""Move devices along recorded paths from tables, GPS tracks, and the traces of other simulators."""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field, field_validator

from edgefl.config import shipped
from edgefl.config.clock import DATE, date_of
from edgefl.errors import EdgeflError, about, clipped, refused
from edgefl.mobility import Coordinate, Movement, Recorded
from edgefl.mobility._traces import _units, read
from edgefl.mobility._traces._gaps import Listings, presence
from edgefl.mobility._traces._samples import Samples, Wanted
from edgefl.mobility._traces._speeds import TRAIN_M_S, mean_speeds_m_s, outlier, speeds_m_s
from edgefl.mobility._walkers import LargerArea
from edgefl.places.plane import look_like_degrees, middle_deg
from edgefl.rng import Streams

PLACE = ("devices", "mobility", "path")
MILLISECONDS = 1e11  # a larger number of seconds lies after the year 5138, so it must be in milliseconds
Role = Literal["id", "t", "x", "y", "lon", "lat", "type"]


class Trace(LargerArea):
    """Devices move as recorded in files, along straight lines between their samples.

    A device is absent before its first and after its last sample, and in long gaps between samples (max_gap_s). Ids
    become devices 0, 1, ... in order of first appearance. `devices.count: all` takes all devices; a number n takes
    the first n devices, and a note says how many are left out. The seed and initial positions are ignored.

    The format of a file is detected from its content, not its name; files may be compressed with gzip:

    - SUMO's floating-car data (`sumo --fcd-output`), XML or table. Vehicles and persons are devices (`kinds` selects
      which); a vehicle and a person with the same id are two devices.
    - Tables with a header, CSV or Parquet (needs pyarrow): columns of time, id and x, y (s, m) or longitude and
      latitude, recognised by their common names or set in `columns`. A file without ids is one device.
    - T-Drive's tables without a header, Porto's trips with a POLYLINE, GeoLife's .plt files, GPX: a file is a device.
    - Waypoints: ns-2 (setdest), BonnMotion (.movements) and ONE (external movement).

    A time is a number, or an ISO 8601 date (in UTC if it names no zone), which is converted to seconds since 1970.
    Rows of tables and tracks may come in any order, with one row per device and time; a note tells how many were
    sorted. In other formats, and in tables without ids, a device's times must increase. Files are read as streams; 24
    bytes per sample stay in memory, and reading needs five times this memory.

    Longitude and latitude become metres around the scenario's origin_lon_lat by a transverse Mercator projection; at
    10 km from the origin's meridian distances are too long by a factor of 1 + 1.2e-6.

    In the simulation, a position is scale x position - origin_m, and its time is time_scale x time - begin_s. The
    Doppler shift follows from a device's mean speed, its path length divided by the time for which it is present; the
    fading of a device that never moves stays the same for the whole run.

    Sources: https://sumo.dlr.de/docs/Simulation/Output/FCDOutput.html; the modules of edgefl/mobility/_traces name
    the sources of other formats. Left out: heights, and recorded speeds and angles.
    """

    own_numbers: ClassVar[bool] = True
    recorded: ClassVar[bool] = True

    path: Path = Field(
        description="path of a file or folder, or a pattern such as taxis/*.csv, relative to the scenario's file"
    )
    columns: dict[Role, str | Annotated[int, Field(ge=1, le=10_000)]] = Field(
        {},
        description="columns of tables by name or number: {t: NAME, id: NAME, x: NAME, y: NAME}, in s"
        " and m, or lon and lat, in degrees, instead of x and y",
    )
    geo: bool | None = Field(
        None,
        description="whether x and y are longitude and latitude; null: no, but an error if they look like degrees",
    )
    bad_rows: Literal["error", "skip"] = Field(
        "error", description="unreadable rows are an error, or are skipped and counted in a note"
    )
    origin_m: tuple[Coordinate, Coordinate] = Field(
        (0.0, 0.0), description="[x, y] of the base station in the trace, in m: after `scale`"
    )
    scale: float = Field(1.0, ge=1e-6, le=1e6, description="metres per length unit of the trace")
    begin_s: Annotated[float, Field(ge=-1e16, le=1e16), DATE] | None = Field(
        None,
        description="time or date in the trace at which the simulation begins, in s: after time_scale, or since 1970"
        " if the trace's times are dates; if left out, the time of the first sample of the devices that are used",
    )
    time_scale: float = Field(1.0, ge=1e-6, le=1e6, description="seconds per time unit of the trace")
    max_gap_s: float | None = Field(
        None,
        gt=0,
        le=1e9,
        description="simulated time between samples beyond which a device is absent; null: 10 times the "
        "device's median interval, at least 60; in SUMO's files, a device is absent in time steps without "
        "it; between waypoints, it is always present",
    )
    area_factor: float = Field(
        1.0,
        ge=1,
        le=20,
        description="largest distance of devices relative to the radius of the cell or layout",
    )
    kinds: tuple[Literal["vehicle", "person", "container"], ...] = Field(
        ("vehicle", "person"), description="elements of SUMO's files that become devices"
    )

    @field_validator("kinds")
    @classmethod
    def _some(cls, kinds: tuple[str, ...]) -> tuple[str, ...]:
        if not kinds:
            raise ValueError("is empty: name vehicle, person or container")
        return kinds

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        count = len(positions_m)
        samples = self._read(count)
        traced = len(samples.devices)
        if traced < count:
            raise EdgeflError(
                f"{count} devices, but {self.path} has {traced}; set devices.count: {traced}, or devices.count: all;"
                " in a class, set its own count",
                ("devices", "count"),
            )
        if traced > count:
            used = f"the first {count:,} are used; set devices.count: all, or a class's count, to use more"
            self.places.notes.append(f"{self.path}: {traced:,} devices, of which {used}")
        return self._moving(samples)

    def start_all(self) -> "_Recorded":
        return self._moving(self._read(None))

    def slower(self, place: str = "devices.mobility") -> tuple[str, str]:
        return "path", _units.remedy(place, self.scale, self.time_scale, faster=False)

    @property
    def _origin(self) -> tuple[float, float] | None:
        """The geographic location of [0, 0] (longitude, latitude), if known."""
        plane = self.places.plane
        return None if plane is None else (plane.lon_deg, plane.lat_deg)

    def _read(self, keep: int | None) -> Samples:
        """Read the samples of a given number of devices, or of all devices; note which rows are skipped."""
        wanted = Wanted(keep, self.geo, self._origin, self.kinds, self.columns, self.bad_rows == "skip")
        with about(*PLACE):
            samples = read(shipped.data(self.path), wanted)
        kept = sum(map(len, samples.rows)) // 3
        if samples.nameless and samples.skipped > kept:
            raise EdgeflError(
                f"{self.path}: {samples.nameless}, so each file is one device, and {samples.skipped:,} of"
                f" {samples.skipped + kept:,} rows would be skipped (the first is {samples.first_skipped}); name the"
                " column of ids in devices.mobility.columns",
                ("devices", "mobility", "columns"),
            )
        self.places.notes.extend(samples.notes(self.path))
        return samples

    def _moving(self, samples: Samples) -> "_Recorded":
        devices = samples.devices[: len(samples.rows)]
        lost = np.array(samples.lost)
        rows, counts, listings = self._in_simulation(samples)
        times = [self._shown(samples, time_s) for time_s in (*samples.span_s, self._begun_s(samples))]
        steps_m_s = speeds_m_s(rows, counts)
        wrong_rows = self._wrong_rows(samples, steps_m_s, counts)
        known = [*["scale"] * bool(samples.degrees), *["time_scale"] * bool(samples.dated)]
        del samples  # free the memory of a second copy of the rows
        present = presence(rows[:, 0], counts, lost, listings, self.max_gap_s)
        movement = _Recorded(rows, counts, present, devices)
        movement.times = "{} has samples from {} to {}, and time 0 is {}".format(self.path, *times)
        movement.wrong_rows = wrong_rows
        doubts = self._doubts(movement, steps_m_s, known, float(np.ptp(rows[:, 1:], axis=0).max()))
        self.places.notes.extend(f"{self.path}: {doubt}" for doubt in doubts)
        return movement

    def _wrong_rows(self, samples: Samples, steps_m_s: np.ndarray, counts: np.ndarray) -> str:
        """Name the first row with a wrong position, and how many steps are too fast; '' if no row is wrong."""
        if (wrong := outlier(steps_m_s, counts)) is None:
            return ""
        (device, sample), fast = wrong, steps_m_s > TRAIN_M_S
        time = self._shown(samples, samples.rows[device][3 * sample])
        return (
            f"{fast.sum():,} of {counts.sum() - len(counts):,} steps between samples are faster than a train,"
            f" the first {steps_m_s[fast.argmax()]:,.0f} m/s; correct or remove the row of"
            f" '{clipped(samples.devices[device].id)}' at {time}, and any others like it"
        )

    def _doubts(
        self, movement: "_Recorded", steps_m_s: np.ndarray, known: Collection[str], extent_m: float
    ) -> Iterator[str]:
        """Yield notes on speeds that are impossible, because of wrong rows or units, and on long gaps."""
        if movement.wrong_rows:
            yield movement.wrong_rows
        elif doubt := _units.doubt(steps_m_s, extent_m, self.scale, self.time_scale, known):
            yield doubt
        if movement.gaps:
            long, of = "long gaps", ""
            if self.max_gap_s is not None:
                long, of = f"gaps of more than {self.max_gap_s:g} s", f" of {movement.intervals:,}"
            yield (
                f"{long} between samples, in which devices are absent: {movement.gaps:,}{of}; the longest lasts"
                f" {movement.longest_gap_s:.4g} s; change the limit with devices.mobility.max_gap_s (1e9: no limit)"
            )

    def _in_simulation(self, samples: Samples) -> tuple[np.ndarray, np.ndarray, Listings]:
        """Return simulated t, x, y [samples, 3], device after device, sample counts [devices], and time steps."""
        rows = np.concatenate([np.frombuffer(row) for row in samples.rows]).reshape(-1, 3)
        counts = np.array([len(row) // 3 for row in samples.rows])
        self._check_units(rows, degrees=bool(samples.degrees))
        if samples.degrees:
            with about(*PLACE), refused(*PLACE):
                rows[:, 1:] = self.places.on_earth(self.path, [rows[:, 1:]], middle_deg).to_m(rows[:, 1:])
        begin_s, last_s = self._begun_s(samples), samples.span_s[1]
        rows[:, 0] = self.time_scale * (rows[:, 0] - begin_s)
        rows[:, 1:] = self.scale * rows[:, 1:] - self.origin_m
        if last_s < begin_s:
            dated = "; a date without a time zone is in UTC" if samples.dated else ""
            raise EdgeflError(
                f"{self._shown(samples, begin_s)} is after the last sample of {self.path},"
                f" {self._shown(samples, last_s)}; set an earlier time{dated}",
                ("devices", "mobility", "begin_s"),
            )
        steps = [(ids, self.time_scale * (times - begin_s)) for ids, times in samples.listings()]
        return rows, counts, steps

    def _shown(self, samples: Samples, time_s: float) -> str:
        """Format a time of the trace: as a date if its times are dates or milliseconds since 1970, or in seconds."""
        if samples.span_s[0] > MILLISECONDS:
            return date_of(self.time_scale * time_s)
        return samples.shown(time_s if samples.dated else self.time_scale * time_s)

    def _begun_s(self, samples: Samples) -> float:
        """Return the time at which the simulation begins, in the unit of the trace's times."""
        if self.begin_s is None:
            return samples.span_s[0]
        # dates are in seconds already: with them, time_scale only makes devices slower or faster
        return self.begin_s if samples.dated else self.begin_s / self.time_scale

    def _check_units(self, rows: np.ndarray, *, degrees: bool) -> None:
        """Raise an error if times or coordinates seem to be in a different unit."""
        if rows[:, 0].min() > MILLISECONDS and self.time_scale == 1:
            remedy = "set time_scale: 0.001 for milliseconds, or 1e-6 for microseconds"
            if 1900 < rows[:, 0].min() / 1e10 < 2200:  # as milliseconds, in the 26th century or later
                remedy = "if they are dates without separators, write them as 2026-01-05T07:30:00Z"
            raise EdgeflError(
                f"{self.path}: times such as {rows[0, 0]:.0f} are not seconds since 1970; {remedy}",
                ("devices", "mobility", "time_scale"),
            )
        undeclared = self.geo is None and self.scale == 1 and not degrees
        found = rows[rows[:, 1:].any(axis=1), 1:]  # a receiver without a position writes 0, 0
        if undeclared and look_like_degrees(found, self._origin):
            seen = f"{self.path}: x, y such as {found[0, 0]:g}, {found[0, 1]:g} look like degrees"
            remedy = "set geo: true and the scenario's origin_lon_lat, geo: false if they are metres, or"
            raise EdgeflError(f"{seen}; {remedy} scale: 1000 if they are kilometres", PLACE)


class _Recorded:
    """The paths of a trace's devices: samples of all devices in one table, and each device's current segment.

    Args:
        samples: [samples, 3] t, x, y of each sample, device after device, with increasing times for each device.
        counts: [devices] how many samples each device has, at least one.
        present: [samples - 1] whether a device is present between a sample and its next sample.
        recorded: id, kind and type of each device in the trace's files.
    """

    moves = True
    times = ""  # the file's first and last time and time 0, in words
    wrong_rows = ""  # which rows have wrong positions, in words

    def __init__(
        self, samples: np.ndarray, counts: np.ndarray, present: np.ndarray, recorded: Sequence[Recorded]
    ) -> None:
        devices = len(counts)
        owner = np.repeat(np.arange(devices), counts)
        firsts = np.cumsum(counts) - counts
        span_s = np.diff(samples[:, 0])
        same = owner[1:] == owner[:-1]
        absent_s, self.intervals = span_s[same & ~present], int(same.sum())
        self.recorded, self.ends_s = recorded, float(samples[:, 0].max())
        self.gaps, self.longest_gap_s = len(absent_s), float(absent_s.max(initial=0.0))
        self._speeds_m_s = mean_speeds_m_s(samples, owner, present, devices)

        # NaN coordinates start each absence: before a device's first sample, and after the last sample before a gap
        before = np.full((devices, 3), np.nan)
        before[:, 0] = np.minimum(samples[firsts, 0] - 1.0, -1.0)
        lasts = np.flatnonzero(np.append(~present, True))
        after = np.full((len(lasts), 3), np.nan)
        after[:, 0] = np.nextafter(samples[lasts, 0], np.inf)
        rows = np.insert(samples, np.append(lasts + 1, firsts), np.concatenate([after, before]), axis=0)
        sizes = counts + np.bincount(owner[lasts], minlength=devices) + 1
        self._ends = np.cumsum(sizes)  # index after each device's last row
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

    def closest_m(self, until_s: float) -> float:
        """Return the smallest distance of any device from [0, 0] in the time 0 to until_s, m, or inf if absent."""
        begun = (self._times_s[:-1] <= until_s) & (self._times_s[1:] >= 0)
        start_s, end_s = self._times_s[:-1][begun], self._times_s[1:][begun]
        from_m, to_m = self._places_m[:, :-1][:, begun], self._places_m[:, 1:][:, begun]
        way_m = np.nan_to_num(to_m - from_m)  # a device stays at its last place before an absence
        square = (way_m**2).sum(axis=0)
        share = np.divide(-(from_m * way_m).sum(axis=0), square, out=np.zeros_like(square), where=square > 0)
        with np.errstate(all="ignore"):  # NaN between devices, and 5e-324 s for a device with one sample
            earliest, latest = ((at_s - start_s) / (end_s - start_s) for at_s in (0.0, until_s))
        apart_m = np.hypot(*(from_m + np.clip(share, earliest.clip(0, 1), latest.clip(0, 1)) * way_m))
        return float(np.fmin.reduce(apart_m, initial=np.inf))

    def _enter(self, ids: np.ndarray, time_s: float) -> None:
        """Find the given devices' segments at a time, by bisection: usually the current or the next segment."""
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
        # a segment before an absence has no velocity, so the device stays at its last place until it is absent
        self._velocity_m_s[:, ids] = np.nan_to_num(velocity_m_s)
