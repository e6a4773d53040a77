"""Penetration loss of devices indoors and in cars, by place or by trip."""

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from edgefl.channel.penetration import CAR_DB, CAR_STD_DB, STD_DB, penetration_loss_db, wall_loss_db
from edgefl.channel.units import FloatArray
from edgefl.engine.air.gains import LargeScaleGains, LargeScaleState, RoundKey
from edgefl.engine.air.measurements import Survey
from edgefl.engine.derived import Derived, DerivedRows
from edgefl.engine.devices.fleet import Fleet
from edgefl.mobility import Trips
from edgefl.mobility._draws import UniformDraws, normal
from edgefl.rng import Streams

BoolArray = npt.NDArray[np.bool_]

# uniform numbers per device and place: one for being indoors, two for the depth, two for a normal number
_NUMBERS = 5
# number of the grid square at the origin along each axis; no square within 2^20 x 25 m has a negative number
_MIDDLE = 2**20


class Coats:
    """The fraction of buildings that have coated windows, and thus a high penetration loss.

    A building does not change while a device is in it. Source: 3GPP TR 38.901, Table 7.4.3-2; the scenario sets the
    fraction, since old houses have plain glass, and new or renovated ones coated glass.

    Args:
        share: [devices] fraction of buildings with coated windows among those that each device enters.
    """

    def __init__(self, share: FloatArray, carrier_hz: float, draws: UniformDraws) -> None:
        self.share = share
        self.wall_db = wall_loss_db(carrier_hz, "high_loss")
        self._draws = draws

    def of(self, square: np.ndarray, ids: np.ndarray) -> BoolArray:
        """Return [n] whether each device's building, identified by square or trip number, has coated windows."""
        coated: BoolArray = self._draws.uniform(ids, square, 1)[0] < self.share[ids]
        return coated


class Indoors:
    """Penetration loss of the buildings that devices are in, as a function of the place.

    The plane is divided into squares as wide as a building is deep. Within a square, a device is either always
    indoors or always outdoors, even when it comes back; devices in the same square are independent. The loss is the
    same towards all sites, so it does not affect the sites' ranking.

    Args:
        share: [devices] probability of being indoors.
        depth_m: depth of buildings.
        coats: decides which buildings have coated glass; None if all have plain glass.
    """

    def __init__(
        self,
        share: FloatArray,
        carrier_hz: float,
        depth_m: float,
        draws: UniformDraws,
        coats: "Coats | None" = None,
    ) -> None:
        self._depth_m = depth_m
        self._share = share
        self._wall_db = wall_loss_db(carrier_hz, "low_loss")
        self._draws = draws
        self._coats = coats
        # indices [n] >= 0 of squares or trips, and their devices [n] -> [n] penetration loss
        self.of_number = DerivedRows(self._loss_in, len(share))

    @classmethod
    def of_fleet(cls, fleet: Fleet, depth_m: float | None, carrier_hz: float, streams: Streams) -> "Indoors":
        """Return the penetration losses set by the devices' classes; without buildings if depth_m is None."""
        coated = fleet.column(lambda kind: kind.coated_share)
        return cls(
            fleet.column(lambda kind: 0.0 if depth_m is None else kind.indoor_share),
            carrier_hz,
            depth_m or 1.0,
            UniformDraws(streams, len(fleet), ("indoors",)),
            Coats(coated, carrier_hz, UniformDraws(streams, len(fleet), ("coated",))),
        )

    def loss_db(self, positions_m: np.ndarray, ids: np.ndarray) -> FloatArray:
        """Return the penetration loss [n] in dB of devices [n] at positions [n, 2]; 0 outdoors."""
        along, across = np.floor(positions_m / self._depth_m).astype(np.int64).T + _MIDDLE
        return self.of_number(along * 2 * _MIDDLE + across, ids)

    def inside(self, loss_db: FloatArray, ids: np.ndarray) -> BoolArray:
        """Return [n] whether each device is in a building, given its loss [n]."""
        return loss_db != 0.0

    def _loss_in(self, square: np.ndarray, ids: np.ndarray) -> FloatArray:
        uniform = self._draws.uniform(ids, square * _NUMBERS, _NUMBERS)
        wall_db, std_db = np.asarray(self._wall_db), np.asarray(STD_DB["low_loss"])
        if self._coats is not None and self._coats.share.any():
            coated = self._coats.of(square, ids)
            wall_db = np.where(coated, self._coats.wall_db, wall_db)
            std_db = np.where(coated, STD_DB["high_loss"], std_db)
        loss_db = penetration_loss_db(
            wall_db,
            std_db,
            inside_m=self._depth_m * np.minimum(uniform[1], uniform[2]),
            normal=normal(uniform[3:5])[0],
        )
        return np.where(uniform[0] < self._share[ids], loss_db, 0.0)


class IndoorsByTrip:
    """Penetration loss of buildings and cars, drawn for each trip of a device.

    A device stays indoors or outdoors from one departure to the next. A device faster than vehicle_above_m_s is in a
    car, whose loss is drawn for each trip. A device whose movement has no destinations never changes its state. The
    loss is the same towards all sites.

    Source: 3GPP TR 38.901, Table 7.2-1 (its indoor share is for users at 3 km/h), and 7.4.3.2 (cars,
    N(9 dB, (5 dB)^2)). Left out: the time that a device spends outdoors while it walks to a place.

    Args:
        buildings: losses of the devices' buildings, here by trip number instead of grid square.
        vehicle_above_m_s: [devices] speed above which each device is in a car; inf for devices without a car.
        trips: returns the current trips of all devices.
    """

    def __init__(
        self,
        buildings: Indoors,
        vehicle_above_m_s: FloatArray,
        trips: Callable[[], Trips],
        draws: UniformDraws,
    ) -> None:
        self._buildings = buildings
        self._above_m_s = vehicle_above_m_s
        self._trips = trips
        self._draws = draws
        self._cars = DerivedRows(self._car_db, len(vehicle_above_m_s))

    @classmethod
    def of_fleet(
        cls,
        fleet: Fleet,
        depth_m: float | None,
        carrier_hz: float,
        streams: Streams,
        trips: Callable[[], Trips],
    ) -> "IndoorsByTrip":
        """Return the penetration losses set by the devices' classes; without buildings if depth_m is None."""
        return cls(
            Indoors.of_fleet(fleet, depth_m, carrier_hz, streams),
            fleet.column(lambda kind: math.inf if kind.vehicle_above_m_s is None else kind.vehicle_above_m_s),
            trips,
            UniformDraws(streams, len(fleet), ("vehicles",)),
        )

    def loss_db(self, positions_m: np.ndarray, ids: np.ndarray) -> FloatArray:
        """Return the current loss [n] in dB of devices [n], regardless of positions_m; 0 outdoors."""
        number, speed_m_s = (column[ids] for column in self._trips())
        in_car = speed_m_s > self._above_m_s[ids]
        loss_db = np.zeros(len(ids))
        for rows, losses in ((~in_car, self._buildings.of_number), (in_car, self._cars)):
            loss_db[rows] = losses(number[rows], ids[rows])
        return loss_db

    def inside(self, loss_db: FloatArray, ids: np.ndarray) -> BoolArray:
        """Return [n] whether each device is in a building and not in a car, given its current loss [n]."""
        return (loss_db != 0.0) & (self._trips()[1][ids] <= self._above_m_s[ids])

    def _car_db(self, trip: np.ndarray, ids: np.ndarray) -> FloatArray:
        """Return the loss [n] in dB of the cars of devices [n] on trips [n]."""
        return CAR_DB + CAR_STD_DB * normal(self._draws.uniform(ids, 2 * trip, 2))[0]


class Obstacles(Protocol):
    """Obstacles that cause the same loss towards all sites."""

    def loss_db(self, positions_m: np.ndarray, ids: np.ndarray) -> FloatArray:
        """Return the current loss [n] in dB of devices [n] at positions [n, 2]."""

    def inside(self, loss_db: FloatArray, ids: np.ndarray) -> BoolArray:
        """Return [n] whether each device is in a building, without line of sight, given its current loss [n]."""


class BehindWalls(LargeScaleGains):
    """Gains reduced by the loss of obstacles; the counters `clamped` and `beyond` stay in the wrapped gains."""

    def __init__(self, gains: LargeScaleGains, indoors: Obstacles) -> None:
        self._gains = gains
        self._indoors = indoors
        self._surveyed = Derived(self._of_survey)

    def of_round(
        self, positions_m: np.ndarray, ids: Sequence[int], cell: int | np.ndarray, key: RoundKey
    ) -> LargeScaleState:
        state, chosen = self._gains.of_round(positions_m, ids, cell, key), np.asarray(ids, dtype=np.intp)
        loss_db = self._indoors.loss_db(positions_m[chosen], chosen)
        return state.behind(loss_db, self._indoors.inside(loss_db, chosen))

    def of_survey(self, survey: Survey, ids: Sequence[int], cells: np.ndarray) -> LargeScaleState:
        chosen, (loss_db, inside) = np.asarray(ids, dtype=np.intp), self._surveyed(survey)
        return self._gains.of_survey(survey, ids, cells).behind(loss_db[chosen], inside[chosen])

    def of_links(self, places_m: np.ndarray, ids: np.ndarray, cells: np.ndarray) -> LargeScaleState:
        loss_db = self._indoors.loss_db(places_m, ids)
        return self._gains.of_links(places_m, ids, cells).behind(loss_db, self._indoors.inside(loss_db, ids))

    def _of_survey(self, survey: Survey) -> tuple[FloatArray, BoolArray]:
        """Compute each device's loss in a survey (0 if the device is absent), and whether the device is indoors."""
        loss_db, everyone = np.zeros(len(survey.positions_m)), np.arange(len(survey.positions_m))
        here = np.flatnonzero(np.isfinite(survey.positions_m[:, 0]))
        loss_db[here] = self._indoors.loss_db(survey.positions_m[here], here)
        return loss_db, self._indoors.inside(loss_db, everyone)

    def power_db(self, positions_m: np.ndarray) -> np.ndarray:
        power_db = np.array(self._gains.power_db(positions_m), dtype=float)
        here = np.flatnonzero(np.isfinite(positions_m[:, 0]))
        power_db[here] -= self._indoors.loss_db(positions_m[here], here)[:, None]
        return power_db
