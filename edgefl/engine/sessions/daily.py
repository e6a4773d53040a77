"""Begin sessions at given hours of the day."""

import math
from itertools import pairwise
from typing import Self

from pydantic import Field, model_validator

from edgefl.config.clock import HOURS, Hour
from edgefl.engine.sessions import TimedPolicy

# a start at most this share of a day before an hour counts as at that hour, since times are rounded
AT_THE_HOUR = 1e-9
PLACES = 9  # decimals to which seconds are rounded; this shifts an hour by less than 1e-10 s


class Daily(TimedPolicy):
    """A session ends, and the next one begins, at each of the given hours, every day.

    No round of the old session begins at or after that hour, but a round under way at that time is completed first.
    The first session begins with the run and lasts until the first of these hours. A day lasts day_s and is divided
    into 24 hours; time 0 is begin_hour. Daily mobility models also have day_s and begin_hour. A cell without devices
    at one of the hours starts its new session when a device comes; hours that pass before then are skipped.
    """

    at_hours: tuple[Hour, ...] = Field(
        min_length=1, description='hours of the day, ascending, each as 17.5 or "17:30"'
    )
    begin_hour: Hour = Field(0.0, description='hour of the day at time 0: 7.5 or "7:30"')
    day_s: float = Field(86_400.0, ge=1, le=1e9, description="length of a day")

    @model_validator(mode="after")
    def _hours(self) -> Self:
        if any(a >= b for a, b in pairwise(self.at_hours)):
            raise ValueError(f"at_hours must ascend, got {list(self.at_hours)}")
        return self

    @property
    def reason(self) -> str:
        return "daily"

    def until_s(self, start_s: float) -> float:
        today = math.floor(start_s / self.day_s)
        # a day of the run begins at begin_hour, so earlier hours come at its end; as a number of hours, 7:50 is
        # inexact, but rounding makes its seconds exact, so that a round can begin exactly with its session
        hours_s = [round((hour - self.begin_hour) / HOURS * self.day_s, PLACES) for hour in self.at_hours]
        times_s = (day * self.day_s + hour_s for day in (today, today + 1, today + 2) for hour_s in hours_s)
        return min(time_s for time_s in times_s if time_s > start_s + AT_THE_HOUR * self.day_s)
