"""Movement between home, work, a city centre and areas, depending on the time of day."""

import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, ClassVar, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.channel.geometry import on_disc
from edgefl.config.clock import Hour
from edgefl.errors import EdgeflError
from edgefl.mobility import Leg, Legs, Movement
from edgefl.mobility._calendar import Calendar, Day, PartOfDay, check
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._walkers import Walkers
from edgefl.rng import Streams

HOME, WORK = range(2)
# Indices at which a device's random numbers begin: four draws, then two numbers for each decision
_WORK_PLACE, _WORK_SPOT, _CENTRE_SPOT, _OPENING, _DECISIONS = 0, 1, 3, 5, 7
# Offset of four numbers for the device's spot in each place that is an area
_AREAS = 2**40
Share = Annotated[float, Field(ge=0, le=1)]
Shares = str | dict[str, Share]


class Spell(PartOfDay):
    """A part of the day, which lasts until the next part begins, with the probability of choosing each place."""

    to: dict[str, Share] = Field(
        description="{place: probability of going there}; places are home, work, centre and areas"
    )

    @model_validator(mode="after")
    def _sum(self) -> Self:
        total = sum(self.to.values())
        if abs(total - 1) > 1e-9:
            raise ValueError(f"the probabilities of `to` sum to {total:g}: make it 1")
        return self


WEEKDAY = (
    Spell(from_hour=0, to={"home": 1.0}),
    Spell(from_hour=7, to={"home": 0.15, "work": 0.75, "centre": 0.1}),
    Spell(from_hour=17, to={"home": 0.5, "work": 0.05, "centre": 0.45}),
    Spell(from_hour=22, to={"home": 0.95, "centre": 0.05}),
)


class Attraction(Walkers):
    """Each device chooses between home, work, the centre and areas, depending on the time of day.

    A device's home is its initial position. All devices share a few work places, which are
    uniformly distributed on the disc; each device belongs to one of them. There is one centre. Each device has its
    own spots, uniformly distributed within 30 m of the place, so the same devices meet at the same places every day.

    Real places are the scenario's `areas`: `homes` and `works` name areas of homes and work places (one, or several
    with the share of the devices in each), and parts of the rhythm may name other areas, {from_hour: 18,
    to: {home: 0.4, stadium: 0.6}}. A device has one spot in each area, uniformly distributed. Areas may lie outside
    the cells; a device there is absent. Parts of the rhythm may belong to days of the week, {from_hour: 0, days:
    [sat, sun], to: {home: 1}}; days without their own parts use the parts without `days`.

    A device decides at exponentially distributed intervals of mean stay_s. The device chooses a place (possibly its
    current place) with the probabilities of the hour, and walks straight there at its own speed; a decision on the
    way redirects it. A day lasts day_s and has 24 hours; the simulation starts at begin_hour. At time t a device
    heads for place i with probability integral of p_i(t - s) exp(-s / stay_s) / stay_s over s > 0, which is the same
    every day. The first day is no exception, since devices begin at the place of their last decision before time 0.

    Source: the idea of Hsu, Spyropoulos, Psounis and Helmy, IEEE/ACM Trans. Networking 2009 (time-variant
    community model: popular places, recurring periods). Left out: roads, and groups that move together.
    """

    speed_max_m_s: float = Field(
        1.8,
        ge=1e-3,
        le=60,
        description="highest speed of a device; with the defaults, the mean is 1.4 m/s, a pedestrian's speed",
    )
    day_s: float = Field(86_400.0, ge=1, le=1e9, description="length of a day")
    begin_hour: Hour = Field(0.0, description='hour of the day at time 0: 7.5 or "7:30"')
    stay_s: float = Field(3600.0, ge=1e-2, le=1e9, description="mean time between decisions, at most a day")
    begin_day: Day = Field("mon", description="day of the week at time 0: mon ... sun")
    rhythm: tuple[Spell, ...] = Field(
        WEEKDAY,
        description="parts of the day, the first from hour 0: {from_hour, to: {place: share}, days}",
    )
    homes: Shares | None = Field(
        None,
        description="area of the homes, or {area: share of the devices}; null: home is a device's initial position",
    )
    works: Shares | None = Field(
        None, description="area of the work places, or {area: share of the devices}; null: 3 random points"
    )
    own_places: ClassVar = ("home", "work", "centre")  # names of places that are not areas
    work_places: ClassVar[int] = 3  # number of work places
    centre_m: ClassVar[tuple[float, float]] = (0.0, 0.0)  # [x, y] of the centre: the base station
    spread_m: ClassVar[float] = 30.0  # radius of a work place and of the centre

    @model_validator(mode="after")
    def _day(self) -> Self:
        check(self.rhythm, "rhythm")
        if self.stay_s > self.day_s:
            raise ValueError(f"stay_s {self.stay_s:g} exceeds day_s {self.day_s:g}: make it at most a day")
        for name, shares in (("homes", self.homes), ("works", self.works)):
            if isinstance(shares, dict) and abs(sum(shares.values()) - 1) > 1e-9:
                raise ValueError(f"{name}: shares sum to {sum(shares.values()):g}: make it 1")
        return self

    @property
    def period_s(self) -> float:
        return self.calendar.period_s

    def area_names(self) -> Iterator[tuple[tuple[str, ...], str]]:
        for key, shares in (("homes", self.homes), ("works", self.works)):
            for name in [shares] if isinstance(shares, str) else shares or ():
                yield (key,), name
        for number, part in enumerate(self.rhythm):
            yield from (
                (("rhythm", str(number), "to", name), name) for name in part.to if name not in self.own_places
            )

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar of the rhythm, which returns the part of the day at a time."""
        return Calendar(self.rhythm, day_s=self.day_s, begin_hour=self.begin_hour, begin_day=self.begin_day)

    @cached_property
    def _visited(self) -> list[str]:
        """The areas named by parts of the rhythm, in order of appearance."""
        return list(
            dict.fromkeys(name for part in self.rhythm for name in part.to if name not in self.own_places)
        )

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        room_m = self.area_radius_m(cell_radius_m) - self.spread_m
        if room_m < np.hypot(*self.centre_m):
            raise EdgeflError(
                f"the centre, {self.spread_m:g} m around {self.centre_m}, reaches beyond the area, whose radius is "
                f"{room_m + self.spread_m:g} m; raise area_factor",
                ("devices", "mobility", "area_factor"),
            )
        draws = UniformDraws(streams, len(positions_m))
        everyone = np.arange(len(positions_m))
        # draw in order, so that additional work places do not change the first ones
        works_m = on_disc(streams("mobility", "work_places").random((self.work_places, 2)).T, room_m)
        mine = (draws.uniform(everyone, _WORK_PLACE, 1)[0] * self.work_places).astype(np.int64)
        spots_m = [
            positions_m.T,
            works_m[:, mine] + on_disc(draws.uniform(everyone, _WORK_SPOT, 2), self.spread_m),
            np.array([self.centre_m]).T + on_disc(draws.uniform(everyone, _CENTRE_SPOT, 2), self.spread_m),
        ]
        for place, shares in ((HOME, self.homes), (WORK, self.works)):
            if shares is not None:
                spots_m[place] = self._spots_m(f"place {place}", shares, draws, everyone)
        spots_m += [self._spots_m(name, name, draws, everyone) for name in self._visited]
        return _Days(np.stack(spots_m), self, self.speeds_m_s(len(positions_m), streams), draws)

    def choices(self, time_s: np.ndarray, uniform: np.ndarray) -> np.ndarray:
        """Choose places [n] at simulated times [n], including times before 0, from uniform numbers [n]."""
        part = self.calendar.spells(time_s)
        # count the cumulative probabilities up to a number; a number above all probabilities chooses the last place
        return (uniform[:, None] >= self._upto[part]).sum(axis=1)

    @cached_property
    def _upto(self) -> np.ndarray:
        """Cumulative probabilities of each part's places except the last, [parts, places - 1]."""
        each = [
            [part.to.get(name, 0.0) for name in (*self.own_places, *self._visited)] for part in self.rhythm
        ]
        return np.cumsum(each, axis=1)[:, :-1]

    def _spots_m(self, place: str, shares: Shares, draws: UniformDraws, ids: np.ndarray) -> np.ndarray:
        """Draw each device's spot [2, ids] in an area, or in one of several areas drawn by their shares."""
        # key the draws by place, so that other places do not change these spots
        return self.places.spots_m(shares, draws.uniform(ids, _AREAS + 4 * zlib.crc32(place.encode()), 4))


class _Days(Legs):
    """Walks of devices between their spots. `spots_m` is [places, 2, devices]."""

    def __init__(
        self, spots_m: np.ndarray, model: Attraction, speeds_m_s: np.ndarray, draws: UniformDraws
    ) -> None:
        super().__init__(speeds_m_s)
        self._spots_m = spots_m
        self._model = model
        self._draws = draws
        self._goal = np.zeros(len(speeds_m_s), dtype=np.int64)

    def begin(self, ids: np.ndarray) -> np.ndarray:
        since, choice = self._draws.uniform(ids, _OPENING, 2)
        self._goal[ids] = self._model.choices(self._model.stay_s * np.log(since), choice)
        return self._spots_m[self._goal[ids], :, ids].T

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        gap, choice = self._draws.uniform(ids, _DECISIONS + 2 * number, 2)
        # until the first decision devices stay at the place where they begin
        self._goal[ids] = np.where(number > 0, self._model.choices(now_s, choice), self._goal[ids])
        gap_s = -self._model.stay_s * np.log(gap)
        way_m = self._spots_m[self._goal[ids], :, ids].T - here_m
        whole_s = np.hypot(*way_m) / self._speeds_m_s[ids]
        # the next decision may happen on the way
        walk_s = np.minimum(whole_s, gap_s)
        done = np.divide(walk_s, whole_s, out=np.ones_like(walk_s), where=whole_s > 0)
        return Leg(here_m + done * way_m, walk_s, gap_s - walk_s)
