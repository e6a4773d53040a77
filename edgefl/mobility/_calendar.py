"""Hour of the day and day of the week of a simulated time, and the part of a daily rhythm that applies then."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, Self, get_args

import numpy as np
from pydantic import Field, model_validator

from edgefl.config.clock import HOURS, Hour
from edgefl.config.strict import Strict

Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
DAYS: tuple[Day, ...] = get_args(Day)


class PartOfDay(Strict):
    """A part of the day, which lasts until the next part begins."""

    from_hour: Hour = Field(description='hour of the day at which this part begins: 17.5 or "17:30"')
    days: tuple[Day, ...] | None = Field(
        None,
        description="days to which this part applies, mon ... sun; if left out, all days that no other part names",
    )

    @model_validator(mode="after")
    def _days_once(self) -> Self:
        if self.days is not None and not 0 < len(self.days) == len(set(self.days)):
            raise ValueError("days: name at least one day, each once, or leave days out for every day")
        return self


def check(spells: Sequence[PartOfDay], what: str) -> None:
    """Check that a rhythm has exactly one part for every hour.

    Raises:
        ValueError: the rhythm is faulty; the message begins with `what` and names the fault.
    """
    for day in DAYS if any(spell.days for spell in spells) else DAYS[:1]:
        begins = [spells[one].from_hour for one in _of_day(spells, day)]
        if begins[:1] != [0] or any(a >= b for a, b in pairwise(begins)):
            on = f" on {day}" if any(spell.days for spell in spells) else ""
            raise ValueError(f"{what}: from_hour must begin at 0 and increase{on}, got {begins}")


class Calendar:
    """The spells of a rhythm over time; they repeat every day, or every week if any spell names days.

    Attributes:
        begins_h: [k] times at which spells begin, in hours (at least 0) since the beginning of the period.
        which: [k] index of the spell that begins at each of these hours.
        period_h: length of the period in hours, 24 or 168.
    """

    def __init__(
        self, spells: Sequence[PartOfDay], *, day_s: float, begin_hour: float, begin_day: Day = "mon"
    ) -> None:
        weekly = any(spell.days for spell in spells)
        days = DAYS if weekly else DAYS[:1]
        parts = [(HOURS * number, one) for number, day in enumerate(days) for one in _of_day(spells, day)]
        self.begins_h = np.array([before_h + spells[one].from_hour for before_h, one in parts])
        self.which = np.array([one for _, one in parts])
        self.period_h = HOURS * len(days)
        self._day_s = day_s
        self._begin_h = begin_hour + (HOURS * DAYS.index(begin_day) if weekly else 0)

    @property
    def period_s(self) -> float:
        """Period with which the spells repeat: a day or a week."""
        return self._day_s * (self.period_h // HOURS)

    def hours(self, time_s: np.ndarray) -> np.ndarray:
        """Return the hours [n] from the first period's beginning to simulated times [n], which may be negative."""
        return self._begin_h + time_s * (HOURS / self._day_s)

    def seconds(self, hours: np.ndarray) -> np.ndarray:
        """Convert hours [n] of the day to simulated seconds."""
        return hours * (self._day_s / HOURS)

    def spells(self, time_s: np.ndarray) -> np.ndarray:
        """Return the index [n] of the spell that applies at simulated times [n], which may be negative."""
        hours = self.hours(time_s) % self.period_h
        return self.which[np.searchsorted(self.begins_h, hours, side="right") - 1]


def _of_day(spells: Sequence[PartOfDay], day: Day) -> list[int]:
    """Return the spells of a day: the day's own spells or, if it has none, the spells of every day."""
    own = [number for number, spell in enumerate(spells) if spell.days and day in spell.days]
    return own or [number for number, spell in enumerate(spells) if not spell.days]
