"""Random direction on a disc with a reflecting border."""

import math

import numpy as np
from pydantic import Field

from edgefl.mobility import Leg, Legs, Movement
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._legs import border_s, mirrored, onto_border
from edgefl.mobility._walkers import Walkers
from edgefl.rng import Streams

# random numbers of a device per trip: heading, walking time, rest, and for the first trip: whether it begins at rest
_PER_TRIP = 4


class RandomDirection(Walkers):
    """Each device walks in a random direction for a random time, rests, and chooses a new direction.

    At the border the device is reflected, as light is by a mirror, and walks on. Walking and resting times are
    exponential. At all times positions are uniform over the area and directions are uniform, so devices are
    in the stationary state from the start, at any speed (Nain, Towsley, Liu and Liu, INFOCOM 2005, on a square; the
    same holds on a disc, since straight motion and reflection preserve volume in position and direction). At the
    start a share pause / (pause + travel) of the devices is at rest. Left out: the older variant, in which devices
    walk to the border each time (Royer, Melliar-Smith and Moser, ICC 2001), which is not uniform.
    """

    travel_s: float = Field(60.0, ge=1e-2, le=1e9, description="mean time between two changes of direction")
    pause_s: float = Field(0.0, ge=0, le=1e9, description="mean time at rest before a new direction")

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        speeds_m_s = self.speeds_m_s(len(positions_m), streams)
        return _StraightTrips(positions_m, self, self.area_radius_m(cell_radius_m), speeds_m_s, streams)


class _StraightTrips(Legs):
    def __init__(
        self,
        positions_m: np.ndarray,
        model: RandomDirection,
        radius_m: float,
        speeds_m_s: np.ndarray,
        streams: Streams,
    ) -> None:
        super().__init__(speeds_m_s)
        self._places_m = positions_m.T.copy()
        self._model = model
        self._radius_m = radius_m
        self._draws = UniformDraws(streams, len(positions_m))
        self._trip = np.zeros(len(positions_m), dtype=np.int64)
        self._heading = np.zeros(len(positions_m))
        self._left_s = np.zeros(len(positions_m))  # remaining walk; positive if a leg ends on the border
        self._rest_s = np.zeros(len(positions_m))  # rest after the trip

    def begin(self, ids: np.ndarray) -> np.ndarray:
        self._trip[ids] = 0
        self._left_s[ids] = 0.0
        return self._places_m[:, ids]

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        reflected = self._left_s[ids] > 0
        self._heading[ids] = mirrored(self._heading[ids], here_m)
        self._set_off(ids[~reflected])
        heading, left_s = self._heading[ids], self._left_s[ids]
        velocity_m_s = self._speeds_m_s[ids] * np.stack([np.cos(heading), np.sin(heading)])
        walk_s = np.minimum(border_s(here_m, velocity_m_s, self._radius_m), left_s)
        self._left_s[ids] -= walk_s
        at_border = self._left_s[ids] > 0
        to_m = here_m + velocity_m_s * walk_s
        to_m[:, at_border] = onto_border(to_m[:, at_border], self._radius_m)
        return Leg(to_m, walk_s, np.where(at_border, 0.0, self._rest_s[ids]))

    def _set_off(self, ids: np.ndarray) -> None:
        """Start a new trip: draw heading, walking time and the rest after the walk."""
        trip = self._trip[ids]
        self._trip[ids] += 1
        turn, travel, pause, phase = self._draws.uniform(ids, _PER_TRIP * trip, _PER_TRIP)
        self._heading[ids] = 2.0 * math.pi * turn
        self._left_s[ids] = -self._model.travel_s * np.log(travel)
        self._rest_s[ids] = -self._model.pause_s * np.log(pause)
        # exponential times have no memory, so the remainder of a pause is distributed like a whole pause
        cycle_s = self._model.pause_s + self._model.travel_s
        at_rest = ids[(trip == 0) & (phase * cycle_s < self._model.pause_s)]
        self._left_s[at_rest] = 0.0
