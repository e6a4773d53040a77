"""Home, work and centre, which attract devices at certain times of day."""

from itertools import pairwise
from typing import Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.errors import EdgeflError
from edgefl.mobility import Coordinate, Movement
from edgefl.mobility._draws import Draws, on_disc
from edgefl.mobility._legs import Leg, Legs
from edgefl.mobility._walkers import Walkers
from edgefl.rng import Streams
from edgefl.strict import Strict

HOURS = 24
HOME, WORK, CENTRE = range(3)
# A device's random numbers: these first, then two for each decision
_WORK_PLACE, _WORK_SPOT, _CENTRE_SPOT, _OPENING, _DECISIONS = 0, 1, 3, 5, 7


class Spell(Strict):
    """A part of the day, until the next one begins, with the probability of each place in its choices."""

    from_hour: float = Field(ge=0, lt=HOURS, description="hour of the day at which it begins, 0 to 24")
    home: float = Field(0.0, ge=0, le=1, description="probability of going home")
    work: float = Field(0.0, ge=0, le=1, description="probability of going to work")
    centre: float = Field(0.0, ge=0, le=1, description="probability of going to the centre")

    @model_validator(mode="after")
    def _sum(self) -> Self:
        total = self.home + self.work + self.centre
        if abs(total - 1) > 1e-9:
            raise ValueError(f"home, work and centre sum to {total:g}: make it 1")
        return self


WEEKDAY = (
    Spell(from_hour=0, home=1.0),
    Spell(from_hour=7, home=0.15, work=0.75, centre=0.1),
    Spell(from_hour=17, home=0.5, work=0.05, centre=0.45),
    Spell(from_hour=22, home=0.95, centre=0.05),
)


class Attraction(Walkers):
    """Each device chooses now and then, by the time of day, to be at home, at work or in the centre.

    Its home is where it was dropped. Work places are few, uniform on the disc and common to all; each device
    belongs to one of them. There is one centre. Devices have their own spots, uniform within spread_m of the
    point. The same devices therefore meet at the same places every day.

    A device decides at times that are stay_s apart in the mean, exponentially distributed, by the
    probabilities of the hour (which may leave it where it is), and walks straight to its new place at its own
    speed; a decision on the way redirects it. A day has day_s and 24 hours; time 0 is begin_hour. At time t a
    device is bound for place i with probability integral of p_i(t - s) exp(-s / stay_s) / stay_s over s > 0,
    the same every day, from the beginning: devices begin at the place of their last decision before time 0.

    Source: the idea of Hsu, Spyropoulos, Psounis and Helmy, IEEE/ACM Trans. Networking 2009 (time-variant
    community model: popular places, recurring periods). Left out: roads, weekdays, groups that go together.
    """

    day_s: float = Field(86_400.0, ge=1, le=1e9, description="length of a day, s")
    begin_hour: float = Field(0.0, ge=0, lt=HOURS, description="hour of the day at time 0, 0 to 24")
    stay_s: float = Field(
        3600.0, ge=1e-2, le=1e9, description="mean time between decisions, s; at most a day"
    )
    rhythm: tuple[Spell, ...] = Field(
        WEEKDAY, description="spells of the day: {from_hour, home, work, centre}, from hour 0"
    )
    work_places: int = Field(3, ge=1, le=1000, description="number of work places")
    centre_m: tuple[Coordinate, Coordinate] = Field(
        (0.0, 0.0), description="[x, y] of the centre, m from the base station"
    )
    spread_m: float = Field(30.0, ge=0, le=5000, description="radius of a work place and of the centre, m")

    @model_validator(mode="after")
    def _day(self) -> Self:
        begins = [spell.from_hour for spell in self.rhythm]
        if begins[:1] != [0] or any(a >= b for a, b in pairwise(begins)):
            raise ValueError(f"rhythm: from_hour must begin with 0 and rise, got {begins}")
        if self.stay_s > self.day_s:
            raise ValueError(f"stay_s {self.stay_s:g} exceeds day_s {self.day_s:g}: the rhythm would drown")
        return self

    @property
    def period_s(self) -> float:
        return self.day_s

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        room_m = self.area_radius_m(cell_radius_m) - self.spread_m
        if room_m < np.hypot(*self.centre_m):
            raise EdgeflError(
                f"the centre at {self.centre_m} with spread_m {self.spread_m:g} reaches out of the area of "
                f"{room_m + self.spread_m:g} m; move it, or raise area_factor",
                ("devices", "mobility", "centre_m"),
            )
        draws = Draws(streams, len(positions_m))
        everyone = np.arange(len(positions_m))
        # one number after another: more work places leave the first ones where they were
        works_m = on_disc(streams("mobility", "work_places").random((self.work_places, 2)).T, room_m)
        mine = (draws.uniform(everyone, _WORK_PLACE, 1)[0] * self.work_places).astype(np.int64)
        spots_m = np.stack(
            [
                positions_m.T,
                works_m[:, mine] + on_disc(draws.uniform(everyone, _WORK_SPOT, 2), self.spread_m),
                np.array([self.centre_m]).T
                + on_disc(draws.uniform(everyone, _CENTRE_SPOT, 2), self.spread_m),
            ]
        )
        return _Days(spots_m, self, self.speeds_m_s(len(positions_m), streams), draws)

    def choices(self, time_s: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Choose places [n] at simulated times [n], also before 0, from uniform numbers [n]."""
        hours = (self.begin_hour + time_s * (HOURS / self.day_s)) % HOURS
        spell = np.searchsorted([spell.from_hour for spell in self.rhythm], hours, side="right") - 1
        upto = np.cumsum([[spell.home, spell.work, spell.centre] for spell in self.rhythm], axis=1)
        # compare with home, and home or work; what is left is the centre
        return (uniform[:, None] >= upto[spell, :CENTRE]).sum(axis=1)


class _Days(Legs):
    """spots_m: [place, 2, devices]."""

    def __init__(self, spots_m: np.ndarray, model: Attraction, speeds_m_s: np.ndarray, draws: Draws) -> None:
        super().__init__(speeds_m_s)
        self._spots_m = spots_m
        self._model = model
        self._draws = draws
        self._goal = np.zeros(len(speeds_m_s), dtype=np.int64)
        self._decision = np.zeros(len(speeds_m_s), dtype=np.int64)

    def _begin(self, who: np.ndarray) -> np.ndarray:
        since, choice = self._draws.uniform(who, _OPENING, 2)
        self._goal[who] = self._model.choices(self._model.stay_s * np.log(since), choice)
        self._decision[who] = 0
        return self._spots_m[self._goal[who], :, who].T

    def _leg(self, who: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        decision = self._decision[who]
        self._decision[who] += 1
        gap, choice = self._draws.uniform(who, _DECISIONS + 2 * decision, 2)
        # before the first decision devices stay at the place where they begin
        self._goal[who] = np.where(decision > 0, self._model.choices(now_s, choice), self._goal[who])
        gap_s = -self._model.stay_s * np.log(gap)
        way_m = self._spots_m[self._goal[who], :, who].T - here_m
        whole_s = np.hypot(*way_m) / self._speeds_m_s[who]
        # the next decision may come on the way
        walk_s = np.minimum(whole_s, gap_s)
        done = np.divide(walk_s, whole_s, out=np.ones_like(walk_s), where=whole_s > 0)
        return Leg(here_m + done * way_m, walk_s, gap_s - walk_s)
