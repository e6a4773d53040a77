"""The clock of runs whose sessions follow no schedule of rounds: the hour of the day, or the time since the start."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from analysis.formatting import TIME_UNITS, amount, unit_for
from analysis.scenario_keys import keys_of

DAY_S, HOURS = 86_400.0, 24.0


@dataclass(frozen=True)
class Clock:
    """A clock.

    Attributes:
        begin_hour: hour of the day at simulated time 0; None: the runs have no day.
        day_s: simulated seconds of a day of 24 hours.
    """

    begin_hour: float | None = None
    day_s: float = DAY_S

    def hours(self, time_s: Any) -> Any:
        """Return the hours since midnight of the first day; of runs without a day since the start."""
        return (self.begin_hour or 0.0) + HOURS * time_s / self.day_s

    def words(self, time_s: float) -> str:
        """Write a time as people do: `8:10`, from the second day on `day 2, 8:10`; without a day `12.5 s`."""
        if self.begin_hour is None:
            unit, size = unit_for([time_s], TIME_UNITS)
            return f"{amount(time_s / size)} {unit}" if time_s else "0 s"
        minutes = round(60 * self.hours(time_s))
        day, minute = divmod(minutes, 60 * round(HOURS))
        clock = f"{minute // 60}:{minute % 60:02d}"
        return f"day {day + 1}, {clock}" if day else clock


def clock_of(info: pd.DataFrame) -> Clock | None:
    """Find the clock of runs, rows of `Runs.info`; None: sessions of one of them follow a schedule of rounds."""
    found: list[Clock] = []
    for path in info.drop_duplicates("variant")["path"]:
        keys = keys_of(path)
        if keys.get("sessions", "schedule") == "schedule":
            return None
        found.append(Clock(_first(keys, "begin_hour"), _first(keys, "day_s") or DAY_S))
    return found[0] if found else None


def _first(keys: Mapping[str, Any], ending: str) -> float | None:
    values = [
        value for key, value in keys.items() if key.endswith(f".{ending}") and isinstance(value, int | float)
    ]
    return float(values[0]) if values else None
