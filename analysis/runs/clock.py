"""The clock of runs without a schedule of rounds, which shows the hour of the day or the time since the start."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from edgefl.analysis.page.formatting import TIME_UNITS, with_unit
from edgefl.analysis.runs.scenario_keys import keys_of

DAY_S, HOURS = 86_400.0, 24.0


@dataclass(frozen=True)
class Clock:
    """A clock that shows the hour of the day or, if a run has no time of day, the time since its start.

    Attributes:
        begin_hour: hour of the day at simulated time 0; None if a run has no time of day.
        day_s: simulated seconds of a day of 24 hours.
    """

    begin_hour: float | None = None
    day_s: float = DAY_S

    def hours(self, time_s: Any) -> Any:
        """Return the hours since midnight of the first day, or since the start if there is no time of day."""
        return (self.begin_hour or 0.0) + HOURS * time_s / self.day_s

    def words(self, time_s: float) -> str:
        """Write a simulated time: `8:10` on the first day, then `day 2, 8:10`; `12.5 s` if no time of day is set."""
        if self.begin_hour is None:
            return with_unit(time_s, TIME_UNITS) if time_s else "0 s"
        hour = self.hours(time_s)
        day, clock = round(60 * hour) // round(60 * HOURS), of_day(hour)
        return f"day {day + 1}, {clock}" if day else clock


def hour_of(text: str) -> float:
    """Read an hour, written as a number or as a clock shows it: 17.5 or 17:30.

    Raises:
        ValueError: the text is neither.
    """
    clock = re.fullmatch(r"(\d+):([0-5]\d)(?::([0-5]\d))?", text.strip())
    if clock:
        hours, minutes, seconds = (int(part or 0) for part in clock.groups())
        return hours + minutes / 60 + seconds / 3600
    try:
        return float(text)
    except ValueError as error:
        raise ValueError(f"no hour '{text}': give 7.75, 7:45 or 7:45:00") from error


def of_day(hour: float) -> str:
    """Write an hour as a clock shows it: 8:05."""
    minutes = round(60 * hour) % round(60 * HOURS)
    return f"{minutes // 60}:{minutes % 60:02d}"


def clock_of(info: pd.DataFrame) -> Clock | None:
    """Return the clock of runs, rows of `Runs.info`, or None if a run's sessions follow a schedule of rounds."""
    keys = [keys_of(run.path) for run in info.drop_duplicates("variant").itertuples()]
    if not keys or any(of_one.get("sessions", "schedule") == "schedule" for of_one in keys):
        return None
    return clock_from(keys[0])


def own_clock(path: str) -> Clock:
    """Return the clock of a run, even if its sessions follow a schedule of rounds."""
    return clock_from(keys_of(path))


def clock_from(keys: Mapping[str, Any]) -> Clock:
    """Return the clock of a scenario, given as dotted keys."""
    return Clock(_first(keys, "begin_hour"), _first(keys, "day_s") or DAY_S)


def _first(keys: Mapping[str, Any], ending: str) -> float | None:
    values = [
        value for key, value in keys.items() if key.endswith(f".{ending}") and isinstance(value, int | float)
    ]
    return float(values[0]) if values else None
