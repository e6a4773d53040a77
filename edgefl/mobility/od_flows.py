"""Move devices between areas at hourly rates, as in a traffic count of origins and destinations."""

from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.config.clock import Hour
from edgefl.mobility import Leg, Legs, Movement
from edgefl.mobility._calendar import Calendar, Day, PartOfDay, check
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._walkers import Walkers
from edgefl.places.areas import points_in
from edgefl.rng import Streams

# A device's random numbers: its first area and position; then departure, destination and position for each trip
_FIRST, _TRIPS, _PER_TRIP = 0, 4, 5
Rate = Annotated[float, Field(ge=0, le=3600)]
Share = Annotated[float, Field(ge=0, le=1)]


class _TripRates(PartOfDay):
    """A part of the day, up to the beginning of the next part, with its trip rates."""

    trips_per_hour: dict[str, dict[str, Rate]] = Field(
        description="{origin: {destination: trips per hour of each device at the origin}}; if left out: no trips"
    )


class OdFlows(Walkers):
    """Each device stays in an area, leaves for another area at a rate given for each hour, and walks straight there.

    If trips_per_hour currently has {o: {d: r}}, a device in area o leaves for d within the next dt hours with
    probability r dt, independently of its past: N devices in area o start N r trips per hour. The device goes to a
    uniformly random place in d, at its own speed, and can leave again on arrival; with d equal to o, it walks within
    the area. Apart from devices on their way, the number of devices in each area therefore follows dN_d/dt = sum over
    o of N_o r_od - N_d sum over e of r_de; an hourly origin-destination table, divided by the number of people at
    each origin, gives the rates.

    Time 0 is begin_hour of begin_day; `begin` distributes the devices among areas, at rest. A day lasts day_s and has
    24 hours. Initial positions are ignored. Areas are the scenario's `areas`; devices in an area
    outside the cells are absent.

    Source: a continuous-time Markov chain with rates that are constant between the given hours, as in trip
    distribution by origin-destination tables (Ortuzar and Willumsen, Modelling Transport, chapter 5). Left out:
    roads, habits of individual devices, and trip purposes.
    """

    speed_max_m_s: float = Field(
        1.8, ge=1e-3, le=60, description="highest speed of a device; pedestrians have a mean speed of 1.4"
    )
    begin: dict[str, Share] = Field(description="{area: share of the devices that are there at time 0}")
    flows: tuple[_TripRates, ...] = Field(
        description="parts of the day, from hour 0: {from_hour, trips_per_hour: {origin: {destination: rate}}, days}"
    )
    day_s: float = Field(86_400.0, ge=1, le=1e9, description="length of a day")
    begin_hour: Hour = Field(0.0, description='hour of the day at time 0: 7.5 or "7:30"')
    begin_day: Day = Field("mon", description="day of the week at time 0: mon ... sun")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        check(self.flows, "flows")
        if abs(sum(self.begin.values()) - 1) > 1e-9:
            raise ValueError(f"begin: shares sum to {sum(self.begin.values()):g}: make it 1")
        return self

    @property
    def period_s(self) -> float:
        return self.calendar.period_s

    @cached_property
    def calendar(self) -> Calendar:
        """The calendar of the flows, which maps times to parts of the day."""
        return Calendar(self.flows, day_s=self.day_s, begin_hour=self.begin_hour, begin_day=self.begin_day)

    def area_names(self) -> Iterator[tuple[tuple[str, ...], str]]:
        for name in self.begin:
            yield ("begin", name), name
        for number, flow in enumerate(self.flows):
            place = ("flows", str(number), "trips_per_hour")
            for origin, rates in flow.trips_per_hour.items():
                yield (*place, origin), origin
                for destination in rates:
                    yield (*place, origin, destination), destination

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        return _TripsBetweenAreas(
            self, self.speeds_m_s(len(positions_m), streams), UniformDraws(streams, len(positions_m))
        )


class _Departures:
    """Times at which devices leave an area, and their destinations.

    Departures form a Poisson process with a piecewise constant rate; the next one happens when the rate's integral
    has grown by a standard exponential random number.
    """

    def __init__(self, calendar: Calendar, rates: np.ndarray) -> None:
        """`rates` [k, areas] are the trips per hour to each area in the spells that begin at calendar.begins_h."""
        self._calendar = calendar
        self._rates = rates.sum(axis=1)
        self._upto = np.cumsum(rates, axis=1)
        self._begins_h = np.append(calendar.begins_h, calendar.period_h)
        self._sum = np.append(0.0, np.cumsum(self._rates * np.diff(self._begins_h)))

    def next(
        self, time_s: np.ndarray, exponential: np.ndarray, choice: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return how long devices stay after times [n], s or inf, and their next destinations, [n] each."""
        whole = self._sum[-1]
        if not whole > 0:
            return np.full(len(time_s), np.inf), np.zeros(len(time_s), dtype=np.int64)
        now_h = self._calendar.hours(time_s) % self._calendar.period_h
        spell = np.searchsorted(self._begins_h, now_h, side="right") - 1
        wanted = self._sum[spell] + (now_h - self._begins_h[spell]) * self._rates[spell] + exponential
        periods, wanted = np.divmod(wanted, whole)
        # find the spell in which the integral reaches `wanted`; its rate is positive
        spell = np.maximum(
            np.searchsorted(self._sum, wanted, side="left") - 1, np.flatnonzero(self._rates)[0]
        )
        leaves_h = self._begins_h[spell] + (wanted - self._sum[spell]) / self._rates[spell]
        stay_h = np.maximum(leaves_h + periods * self._calendar.period_h - now_h, 0.0)
        upto = self._upto[spell]
        goal = (choice[:, None] * upto[:, -1:] >= upto[:, :-1]).sum(axis=1)
        return self._calendar.seconds(stay_h), goal


class _TripsBetweenAreas(Legs):
    def __init__(self, model: OdFlows, speeds_m_s: np.ndarray, draws: UniformDraws) -> None:
        super().__init__(speeds_m_s)
        # sort by name, so that the order in the file does not matter
        names = sorted({name for _, name in model.area_names()})
        self._regions = [model.places.areas[name] for name in names]
        self._begins = np.cumsum([model.begin.get(name, 0.0) for name in names])[:-1]
        calendar = model.calendar
        rates = np.array(
            [
                [[flow.trips_per_hour.get(o, {}).get(d, 0.0) for d in names] for o in names]
                for flow in model.flows
            ]
        )
        self._departures = [
            _Departures(calendar, rates[calendar.which, number]) for number in range(len(names))
        ]
        self._draws = draws
        self._goal = np.zeros(len(speeds_m_s), dtype=np.int64)

    def begin(self, ids: np.ndarray) -> np.ndarray:
        uniform = self._draws.uniform(ids, _FIRST, 4)
        self._goal[ids] = (uniform[0][:, None] >= self._begins).sum(axis=1)
        return points_in(self._regions, self._goal[ids], uniform[1:])

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        area = self._goal[ids]
        uniform = self._draws.uniform(ids, _TRIPS + _PER_TRIP * number, _PER_TRIP)
        # the first leg, at time 0, has no walk: devices rest where they were placed
        to_m = np.where(number > 0, points_in(self._regions, area, uniform[2:]), here_m)
        walk_s = np.hypot(*(to_m - here_m)) / self._speeds_m_s[ids]
        rest_s, exponential = np.empty(len(ids)), -np.log(uniform[0])
        for origin in np.unique(area).tolist():
            there = np.flatnonzero(area == origin)
            rest_s[there], self._goal[ids[there]] = self._departures[origin].next(
                (now_s + walk_s)[there], exponential[there], uniform[1, there]
            )
        return Leg(to_m, walk_s, rest_s)
