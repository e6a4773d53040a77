"""The time of day in a run, if any part of its scenario defines one."""

from dataclasses import dataclass
from typing import Any

from edgefl.config.clock import HOURS


@dataclass(frozen=True)
class Day:
    """A day of 24 hours that takes `day_s` seconds of simulated time; the run begins at `begin_hour`."""

    begin_hour: float
    day_s: float

    def clock(self, time_s: float) -> str:
        """Format a time as day and clock, e.g. `day 2 08:05`; the run begins on day 1."""
        minutes = round((self.begin_hour / HOURS + time_s / self.day_s) * HOURS * 60, 6)
        day, minute = divmod(int(minutes), HOURS * 60)
        return f"day {day + 1} {minute // 60:02d}:{minute % 60:02d}"

    def __str__(self) -> str:
        return f"begin_hour {self.begin_hour:g} and day_s {self.day_s:g}"


def named_days(sessions: Any, devices: Any) -> dict[str, Day | None]:
    """Return the day that each relevant key of a scenario defines, or None for a key that defines no day."""
    parts = {"sessions": sessions}
    parts |= {".".join(place): mobility for place, mobility in devices.mobilities()}
    return {where: _day_of(part) for where, part in parts.items()}


def _day_of(part: Any) -> Day | None:
    if not (hasattr(part, "begin_hour") and hasattr(part, "day_s")):
        return None
    return Day(part.begin_hour, part.day_s)
