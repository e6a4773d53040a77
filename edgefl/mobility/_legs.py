"""Movement in straight legs, one after another, the base of most models."""

import math
from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np


class Trips(NamedTuple):
    """The trips of devices, [devices] each.

    number: number of the current trip, or of the last trip while a device stays; 0 before the first trip, and always
    0 in models without destinations. speed_m_s: current speed, 0 at rest.
    """

    number: np.ndarray
    speed_m_s: np.ndarray


class Leg(NamedTuple):
    """A straight walk of n devices at constant speed, followed by a rest."""

    to_m: np.ndarray  # [2, n] end of the walk
    walk_s: np.ndarray  # [n] >= 0; 0 if the device stays
    rest_s: np.ndarray  # [n] >= 0


class Legs(ABC):
    """Movement of devices that walk leg after leg; a model derives each leg from the previous leg.

    Legs are made as time passes, for all devices together and one leg ahead, since making many legs in one call takes
    little longer than making one leg. A leg depends on the device, the device's random numbers and the state at the
    end of the previous leg, but never on the times of earlier calls. A call for a time before a device's current leg
    recomputes the device's walk from time 0. Such a call is slow, but simulations only move forward.

    Inside the models, arrays are [2, devices], since operations on them are twice as fast as on [devices, 2].

    Args:
        speeds_m_s: [devices] speed for the Doppler shift.
    """

    moves = True
    # whether each leg is a trip to a destination, even without a rest there; otherwise a trip lasts until a rest
    leads_to_places: ClassVar[bool] = False

    def __init__(self, speeds_m_s: np.ndarray) -> None:
        devices = len(speeds_m_s)
        self._trip_number = np.zeros(devices, dtype=np.int64)
        self._has_rested = np.zeros(devices, dtype=bool)  # whether the device has rested since its last walk
        self._speeds_m_s = speeds_m_s
        self._from_m = np.zeros((2, devices))
        self._to_m = np.zeros((2, devices))
        self._velocity_m_s = np.zeros((2, devices))
        self._start_s = np.full(devices, math.inf)  # inf, so that the first call starts the legs
        self._arrive_s = np.zeros(devices)
        self._until_s = np.zeros(devices)
        # latest start and earliest end of current legs, between which no leg starts or ends, and latest arrival
        self._last_start_s, self._first_end_s, self._last_arrival_s = math.inf, -math.inf, 0.0
        self._number = np.zeros(devices, dtype=np.int64)  # number of each device's next leg
        # the leg after the current one, if it has been made
        self._made = np.zeros(devices, dtype=bool)
        self._next = Leg(np.zeros((2, devices)), np.zeros(devices), np.zeros(devices))

    @abstractmethod
    def begin(self, ids: np.ndarray) -> np.ndarray:
        """Reset the devices `ids` to time 0; return their places [2, ids] at that time, m."""

    @abstractmethod
    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        """Make the next leg of the devices `ids`, which are at here_m [2, ids] at the times now_s [ids].

        Args:
            number: [ids] number of legs that each device has already walked.
        """

    def positions_m(self, time_s: float) -> np.ndarray:
        self._walk(time_s)
        walked_s = np.minimum(time_s, self._arrive_s) - self._start_s
        positions_m = np.empty((len(walked_s), 2))
        for axis in range(2):
            np.multiply(self._velocity_m_s[axis], walked_s, out=positions_m[:, axis])
            positions_m[:, axis] += self._from_m[axis]
        return positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return self._speeds_m_s

    def trips(self, time_s: float) -> Trips:
        """Return the trips at a time; a trip begins when a device leaves a rest, and ends at the next rest."""
        self._walk(time_s)
        # report the mean speed of a moving device, since a slow leg does not mean that it has left its vehicle
        return Trips(self._trip_number.copy(), np.where(time_s < self._arrive_s, self._speeds_m_s, 0.0))

    def still_until_s(self, time_s: float) -> float:
        """Return the time until which no device moves; `time_s` if any device is moving."""
        self._walk(time_s)
        return self._first_end_s if self._last_arrival_s <= time_s else time_s

    def _walk(self, time_s: float) -> None:
        """Advance all devices to the legs that they walk at the given time."""
        if self._last_start_s <= time_s < self._first_end_s:
            return  # the usual case
        if not 0 <= time_s < math.inf:
            raise ValueError(f"time_s must be >= 0 and finite, got {time_s}")
        again = np.flatnonzero(time_s < self._start_s)
        if len(again):
            self._to_m[:, again] = self.begin(again)
            self._until_s[again] = 0.0
            self._number[again] = 0
            self._trip_number[again] = 0
            self._has_rested[again] = True
            self._made[again] = False
        due = np.flatnonzero(time_s >= self._until_s)
        while len(due):
            self._set_out(due)
            due = due[time_s >= self._until_s[due]]
        self._last_start_s = float(self._start_s.max(initial=0.0))
        self._last_arrival_s = float(self._arrive_s.max(initial=0.0))
        self._first_end_s = float(self._until_s.min(initial=math.inf))

    def _set_out(self, ids: np.ndarray) -> None:
        if not self._made[ids].all():
            lacking = np.flatnonzero(~self._made & np.isfinite(self._until_s))  # inf: the device never leaves
            made = self.next_leg(
                lacking, self._number[lacking], self._to_m[:, lacking], self._until_s[lacking]
            )
            self._number[lacking] += 1
            for part, new in zip(self._next, made, strict=True):
                part[..., lacking] = new
            self._made[lacking] = True
        self._made[ids] = False
        here_m, now_s = self._to_m[:, ids], self._until_s[ids]
        to_m, walk_s, rest_s = (part[..., ids] for part in self._next)
        walks = walk_s > 0
        self._trip_number[ids] += walks & (self._has_rested[ids] | self.leads_to_places)
        self._has_rested[ids] = (rest_s > 0) | (self._has_rested[ids] & ~walks)
        way_m = to_m - here_m
        self._velocity_m_s[:, ids] = np.divide(way_m, walk_s, out=np.zeros_like(way_m), where=walk_s > 0)
        self._from_m[:, ids], self._to_m[:, ids] = here_m, to_m
        self._start_s[ids] = now_s
        self._arrive_s[ids] = now_s + walk_s
        self._until_s[ids] = now_s + walk_s + rest_s


def border_s(here_m: np.ndarray, velocity_m_s: np.ndarray, radius_m: float) -> np.ndarray:
    """Return the time [n] until devices at [2, n], inside a disc around the origin, reach its border; inf at rest.

    The larger root s of |here + s velocity|^2 = radius^2.
    """
    square = (velocity_m_s**2).sum(axis=0)
    outwards = (here_m * velocity_m_s).sum(axis=0)
    # a device on the border may be outside by a rounding error
    inside = np.maximum(radius_m**2 - (here_m**2).sum(axis=0), 0.0)
    root = np.sqrt(outwards**2 + square * inside)
    # this form of the root avoids subtracting nearly equal numbers
    with np.errstate(divide="ignore", invalid="ignore"):
        time_s = np.where(outwards > 0, inside / (outwards + root), (root - outwards) / square)
    return np.where(square > 0, time_s, math.inf)


def mirrored(heading: np.ndarray, here_m: np.ndarray) -> np.ndarray:
    """Reflect headings [n] at the border of a disc around the origin, at the places [2, n]."""
    return 2.0 * np.arctan2(here_m[1], here_m[0]) + math.pi - heading


def onto_border(here_m: np.ndarray, radius_m: float) -> np.ndarray:
    """Move places [2, n] radially onto the border, to correct the drift that rounding errors cause."""
    return here_m * (radius_m / np.hypot(here_m[0], here_m[1]))
