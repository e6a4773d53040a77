"""Move people between home and other places on a daily or weekly schedule."""

import zlib
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.config.clock import HOURS, Hour, shown
from edgefl.config.registry import did_you_mean
from edgefl.config.strict import Strict
from edgefl.errors import EdgeflError, quoted
from edgefl.mobility import Coordinate, Leg, Legs, Movement
from edgefl.mobility._calendar import DAYS, Day
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._walkers import Walkers
from edgefl.mobility._ways import Ways, cut_off, without_a_return
from edgefl.places.permissions import Mode
from edgefl.rng import Streams

# m/s; our choice of limits between SUMO's default speeds for pedestrians (5 km/h), bicycles (20 km/h) and cars
FASTEST: dict[Mode, float] = {"foot": 3.0, "bicycle": 8.0}
HOME = "home"
PER_DAY: dict[str, tuple[Day, ...]] = {"daily": DAYS, "weekdays": DAYS[:5], "weekend": DAYS[5:]}
# Offsets in a person's two random streams. The stream of habits starts with a number per entry of the plan. From this
# offset on, each place has four numbers for the person's spot, and one that decides whether it is ever visited
_SPOTS = 2**40
# The stream of days has a sequence for each entry of the plan, with one number per day starting at this offset
_DAYS, _TODAY = 2**32, 2**16
Share = Annotated[float, Field(ge=0, le=1)]
Address = str | dict[str, Share] | tuple[Coordinate, Coordinate]


def _of_place(name: str) -> int:
    """Return the offset, computed from a place's name, of a person's random numbers for this place."""
    return _SPOTS + 8 * zlib.crc32(name.encode())


class _Trip(Strict):
    """An entry of a plan: time, destination, share of people, and days."""

    leave: Hour = Field(description='hour of the day at which people leave: 8.5 or "8:30"')
    to: str = Field(description="destination: home, or a name in addresses")
    spread_min: float = Field(
        0.0, ge=0, le=720, description="people leave at most this many minutes before or after `leave`"
    )
    share: float = Field(
        1.0, ge=0, le=1, description="share of the people who go there; they are the same people every day"
    )
    days: Literal["daily", "weekdays", "weekend"] | tuple[Day, ...] = Field(
        "daily", description="daily, weekdays (mon to fri), weekend, or a list of mon ... sun"
    )

    @model_validator(mode="after")
    def _days_once(self) -> Self:
        if not isinstance(self.days, str) and not 0 < len(self.days) == len(set(self.days)):
            raise ValueError("days: name at least one day, each once, or leave days out for every day")
        return self

    @property
    def on(self) -> tuple[Day, ...]:
        """The days of the week on which people leave."""
        return PER_DAY[self.days] if isinstance(self.days, str) else self.days


class Itinerary(Walkers):
    """Each person leaves home at a set time, goes to work or elsewhere, stays there, and returns at a set time.

    `plan` contains the times: `{leave: "8:00", spread_min: 15, to: work, share: 0.8, days: weekdays}`, then `{leave:
    "17:30", spread_min: 30, to: home, days: weekdays}`. `addresses` maps each place to an area's name, {area: share
    of the people}, or a point [x, y], m. Home is the person's initial position, unless `addresses` says where home
    is. In an area, each person has a fixed spot, drawn uniformly.

    A person leaves at `leave` + spread_min (habit h + (1 - habit) d) minutes, where h and d are uniform in -1 to 1; h
    is drawn once for each person and entry, and d every day. The deviation from `leave` has a trapezoidal density
    with variance spread_min^2 (habit^2 + (1 - habit)^2) / 3. With habit 1 all days are equal; with habit 0 they are
    independent. One draw per person and place decides who belongs to the `share` that goes there. If two entries have
    the same destination, the people of the smaller share also belong to the larger share.

    People move at a constant speed: straight to the nearest point of the scenario's `streets`, along the shortest
    route, and straight to the destination; without `streets`, they move in a straight line. Entries are followed in
    order: a person still on the way at the next entry sets out again on arrival. Times within a day must increase. At
    time 0, which is begin_hour of begin_day, people are where the plan has brought them, or at home if they never
    leave. A day lasts day_s and has 24 hours, each of 60 minutes.

    Source: activity-based travel demand in its simplest form (Ortuzar and Willumsen, Modelling Transport, chapter 14;
    plans as in Horni, Nagel and Axhausen, The Multi-Agent Transport Simulation MATSim, 2016). Left out: effects of
    traffic, one-way streets, lanes, traffic lights, people who travel together, speed limits.
    """

    speed_max_m_s: float = Field(
        1.8,
        ge=1e-3,
        le=60,
        description="highest speed of a device; by default the mean speed is 1.4, a pedestrian's speed",
    )
    addresses: dict[str, Address] = Field(
        description="{place: area | {area: share of the people} | [x, y]}: locations of work, school, home, ..."
    )
    mode: Mode | None = Field(
        None,
        description="foot, bicycle, bus or car: decides which streets of a map are open; null: chosen by"
        " speed_max_m_s, foot up to 3 m/s, bicycle up to 8 m/s, car above 8 m/s",
    )
    plan: tuple[_Trip, ...] = Field(
        min_length=1,
        max_length=100,
        description="trips in order of their time of day: {leave, to, spread_min, share, days}",
    )
    day_s: float = Field(86_400.0, ge=1, le=1e9, description="length of a day")
    begin_hour: Hour = Field(0.0, description='hour of the day at time 0: 7.5 or "7:30"')
    begin_day: Day = Field("mon", description="day of the week at time 0: mon ... sun")
    habit: ClassVar[float] = 2 / 3  # weight of a person's fixed offset; our choice

    @model_validator(mode="after")
    def _plan_holds(self) -> Self:
        for name, address in self.addresses.items():
            if isinstance(address, dict) and abs(sum(address.values()) - 1) > 1e-9:
                raise EdgeflError(f"shares sum to {sum(address.values()):g}: make it 1", ("addresses", name))
        for number, trip in enumerate(self.plan):
            if trip.to not in self._names:
                known = did_you_mean(trip.to, self._names)
                raise EdgeflError(
                    f"no place {quoted(trip.to)} in addresses{known}", ("plan", str(number), "to")
                )
        for day in DAYS:
            leaves = [trip.leave for trip in self.plan if day in trip.on]
            if any(a >= b for a, b in pairwise(leaves)):
                raise EdgeflError(
                    f"leave must ascend, but is {', '.join(map(shown, leaves))} on {day}; sort the plan, "
                    "and put people with another plan into their own class",
                    ("plan",),
                )
        return self

    @property
    def period_s(self) -> float:
        return self.day_s * (1 if all(trip.on == DAYS for trip in self.plan) else len(DAYS))

    def area_names(self) -> Iterator[tuple[tuple[str, ...], str]]:
        for place, address in self.addresses.items():
            if isinstance(address, str):
                yield ("addresses", place), address
            elif isinstance(address, dict):
                for name in address:
                    yield ("addresses", place, name), name

    @property
    def travels_by(self) -> Mode:
        """The people's mode of travel: `mode`, or the slowest mode that reaches their highest speed."""
        slow: list[Mode] = [mode for mode, top_m_s in FASTEST.items() if self.speed_max_m_s <= top_m_s]
        return self.mode or [*slow, "car"][0]

    @cached_property
    def _names(self) -> list[str]:
        """Names of the people's places, home first."""
        return list(dict.fromkeys([HOME, *self.addresses]))

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        draws = UniformDraws(streams, len(positions_m), ("mobility", "habits"))
        spots_m = np.stack([self._spots_m(name, positions_m, draws) for name in self._names])
        return _Commutes(spots_m, self, self.speeds_m_s(len(positions_m), streams), streams, draws)

    def _spots_m(self, name: str, dropped_m: np.ndarray, draws: UniformDraws) -> np.ndarray:
        """Draw each person's spot [2, people] in one of the places."""
        address = self.addresses.get(name)
        everyone = np.arange(len(dropped_m))
        if address is None:
            return dropped_m.T
        if isinstance(address, tuple):
            return np.repeat(np.array([address]).T, len(everyone), axis=1)
        return self.places.spots_m(address, draws.uniform(everyone, _of_place(name), 4))

    @property
    def goes_anywhere(self) -> bool:
        return True  # addresses and streets may be anywhere

    def follows(self, draws: UniformDraws, ids: np.ndarray) -> np.ndarray:
        """Draw whether each person ever follows each entry of the plan, bool [entries, ids]."""
        return np.stack([draws.uniform(ids, _of_place(trip.to) + 4, 1)[0] < trip.share for trip in self.plan])


class _Commutes(Legs):
    """People's trips between their places, as legs from corner to corner.

    Args:
        spots_m: [places, 2, people] each person's places, home first.
        draws: random numbers of the people's habits.
    """

    def __init__(
        self,
        spots_m: np.ndarray,
        model: Itinerary,
        speeds_m_s: np.ndarray,
        streams: Streams,
        draws: UniformDraws,
    ) -> None:
        super().__init__(speeds_m_s)
        people = np.arange(len(speeds_m_s))
        self._leaves = _Leaves(model, draws, UniformDraws(streams, len(people), ("mobility", "days")), people)
        goals = np.array([model._names.index(trip.to) for trip in model.plan])
        self._goals = goals
        self._pairs = self._leaves.pairs(goals)
        self._model, self._streets = model, model.places.streets_for(model.travels_by)
        self._ways = Ways(spots_m, self._pairs, self._streets)
        self._spots_m = spots_m
        # number of the last entry that the person followed, see `_Leaves`; place where the person is or goes
        self._entry = np.zeros(len(people), dtype=np.int64)
        self._place = np.zeros(len(people), dtype=np.int64)
        # last corner reached on the person's route, and the route's end
        self._corner = np.zeros(len(people), dtype=np.int64)
        self._last = np.zeros(len(people), dtype=np.int64)
        self._first_s = np.zeros(len(people))  # first departure, if the person rests at time 0

    def notes(self, ids: np.ndarray) -> Iterator[str]:
        """Yield notes on slow vehicles, on people among `ids` that never come home, and on places out of reach."""
        model = self._model
        if model.mode not in (None, "foot") and model.speed_max_m_s <= FASTEST["foot"]:
            yield (
                f"mode: {model.mode} chooses the streets, not the speed: devices move at most at"
                f" {model.speed_max_m_s:g} m/s, as on foot; set speed_min_m_s and speed_max_m_s"
            )
        goals = [trip.to for trip in self._model.plan]
        yield from without_a_return(self._leaves.followed[:, ids], goals, HOME)
        if self._streets is not None:
            own = {pair: people[np.isin(people, ids)] for pair, people in self._pairs.items()}
            yield from cut_off(self._spots_m, own, self._streets, self._model._names)

    def begin(self, ids: np.ndarray) -> np.ndarray:
        """Return where people are at time 0, by following the plan from an earlier day."""
        self._entry[ids] = self._leaves.first
        self._place[ids] = 0
        at_m = np.empty((2, len(ids)))
        now_s = np.full(len(ids), -np.inf)
        left = np.arange(len(ids))
        while len(left):
            one = ids[left]
            before = self._place[one]
            set_out_s = np.maximum(self._set_off(one), now_s[left])
            whole_m = self._ways.lengths_m(self._corner[one], self._last[one])
            now_s[left] = set_out_s + whole_m / self._speeds_m_s[one]
            late = now_s[left] > 0
            # people who set out after time 0 rest until then; people on the way have passed some corners
            self._first_s[one] = np.maximum(set_out_s, 0.0)
            walks = late & (set_out_s <= 0)
            walking = one[walks]
            self._corner[walking], at_m[:, left[walks]] = self._ways.after(
                self._corner[walking], self._last[walking], -set_out_s[walks] * self._speeds_m_s[walking]
            )
            rests = late & (set_out_s > 0)
            at_m[:, left[rests]] = self._spots_m[before[rests], :, one[rests]].T
            left = left[~late]
        return at_m

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        waits = (number == 0) & (self._first_s[ids] > 0)
        on = np.minimum(self._corner[ids] + 1, self._last[ids])
        to_m = np.where(waits | (self._corner[ids] == self._last[ids]), here_m, self._ways.corners_m[:, on])
        walk_s = np.hypot(*(to_m - here_m)) / self._speeds_m_s[ids]
        rest_s = np.where(waits, self._first_s[ids], 0.0)
        self._corner[ids] = np.where(waits, self._corner[ids], on)
        there = np.flatnonzero(~waits & (on == self._last[ids]))
        arrive_s = (now_s + walk_s)[there]
        rest_s[there] = np.maximum(self._set_off(ids[there]) - arrive_s, 0.0)
        return Leg(to_m, walk_s, rest_s)

    def _set_off(self, ids: np.ndarray) -> np.ndarray:
        """Start each person's next trip; return the planned departures [ids], s, or inf if there is no trip."""
        self._entry[ids], leave_s, entry = self._leaves.after(ids, self._entry[ids])
        goal = np.where(np.isfinite(leave_s), self._goals[entry], self._place[ids])
        self._corner[ids], self._last[ids] = self._ways.of(ids, self._place[ids], goal)
        self._place[ids] = goal
        return leave_s


class _Leaves:
    """Departures of people. The entries of all days are numbered in order; 0 is the first entry on the day of time 0.

    Attributes:
        first: number before the first entry to search, which is a day (a week if days differ) before time 0.
        followed: [entries, people] whether a person follows an entry.
    """

    def __init__(
        self, model: Itinerary, habits: UniformDraws, days: UniformDraws, people: np.ndarray
    ) -> None:
        self._trips = model.plan
        self._days = days
        self._habit = model.habit
        self._hour_s = model.day_s / HOURS
        self._begin_hour, self._weekday = model.begin_hour, DAYS.index(model.begin_day)
        self.followed = model.follows(habits, people)
        self._on = np.array([[day in trip.on for day in DAYS] for trip in model.plan])  # [entries, 7]
        self._never = np.logical_not(np.asarray(self.followed.any(axis=0)))
        self._usual = np.stack([2 * habits.uniform(people, n, 1)[0] - 1 for n in range(len(model.plan))])
        self._leave_h = np.array([trip.leave for trip in model.plan])
        self._spread_h = np.array([trip.spread_min for trip in model.plan]) / 60
        # subtract 1, since `after` begins with the next entry
        self.first = -len(model.plan) * round(model.period_s / model.day_s) - 1

    def pairs(self, goals: np.ndarray) -> dict[tuple[int, int], np.ndarray]:
        """Return the pairs of places that people travel between, lower number first, and the people of each pair.

        goals: [entries] number of each entry's destination. After one period each person is at the destination of the
        last entry that the person follows, so two periods cover all trips.
        """
        place = np.zeros(self.followed.shape[1], dtype=np.int64)
        nobody = np.zeros(len(place), dtype=bool)
        walks: dict[tuple[int, int], np.ndarray] = {}
        for at in range(self.first + 1, -self.first):
            day, which = divmod(at, len(self._trips))
            goal = int(goals[which])
            leaving = (
                self.followed[which] & self._on[which, (self._weekday + day) % len(DAYS)] & (place != goal)
            )
            for here in np.unique(place[leaving]).tolist():
                pair = (min(here, goal), max(here, goal))
                walks[pair] = walks.get(pair, nobody) | (leaving & (place == here))
            place[leaving] = goal
        return {pair: np.flatnonzero(walks[pair]) for pair in sorted(walks)}

    def after(self, ids: np.ndarray, entry: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the number of each person's next entry [ids], its departure time in s, and its index in the plan."""
        at = entry + 1
        searching = np.flatnonzero(~self._never[ids])
        while len(searching):
            day, which = np.divmod(at[searching], len(self._trips))
            here = self.followed[which, ids[searching]] & self._on[which, (self._weekday + day) % len(DAYS)]
            searching = searching[~here]
            at[searching] += 1
        day, which = np.divmod(at, len(self._trips))
        # `_TODAY` keeps the index positive for days before time 0, which have random numbers, too
        today = 2 * self._days.uniform(ids, which * _DAYS + _TODAY + day, 1)[0] - 1
        late = self._habit * self._usual[which, ids] + (1 - self._habit) * today
        leave_h = HOURS * day + self._leave_h[which] + self._spread_h[which] * late - self._begin_hour
        return at, np.where(self._never[ids], np.inf, leave_h * self._hour_s), which
