"""Streets in a square grid."""

import math
from typing import ClassVar

import numpy as np
from pydantic import Field

from edgefl.errors import EdgeflError
from edgefl.mobility import Leg, Legs, Movement
from edgefl.mobility._draws import UniformDraws
from edgefl.mobility._walkers import Walkers
from edgefl.rng import Streams

# headings: east, north, west, south; +1 is a turn to the left
_AHEAD = np.array([[1, 0, -1, 0], [0, 1, 0, -1]])
# A device's random numbers: from index 0 on, one for each junction; from this index on, the numbers for its start
_START = 2**40


class Manhattan(Walkers):
    """Devices drive along the streets of a square grid and turn at junctions.

    The area is a square around the base station; half of its side is area_factor times the cell's radius; the base
    station is in the middle of a block. At each junction a device turns left or right or goes straight on; at the
    area's edge, where streets end, it turns round. Each device keeps its speed.

    Devices start uniformly on all streets and in both directions; their initial positions are ignored. The
    distribution at the start is stationary: the probabilities of entering a piece of street straight on, by a left
    turn and by a right turn sum to one, as do the probabilities of leaving it.

    Source: Bai, Sadagopan and Helmy, INFOCOM 2003 (Manhattan model, turns 0.25 and 0.25). Left out: the lanes and
    following distances in Bai et al.'s model, the width of streets, traffic lights.
    """

    area_factor: float = Field(
        1.0, ge=1, le=10, description="half the side of the square area, relative to the cell's radius"
    )
    block_m: float = Field(100.0, ge=10, le=2000, description="distance between neighbouring streets")
    left_probability: ClassVar[float] = 0.25  # probability of a left turn at a junction; Bai et al.
    right_probability: ClassVar[float] = 0.25  # probability of a right turn; Bai et al.

    def reach_m(self, cell_radius_m: float) -> float:
        return math.sqrt(2.0) * self.area_radius_m(cell_radius_m)  # distance of the corners from the centre

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        half_m = self.area_radius_m(cell_radius_m)
        # streets at odd multiples of half a block; no street lies on the edge itself
        pairs = math.ceil(half_m / self.block_m - 0.5)
        if pairs < 1:
            raise EdgeflError(
                f"{self.block_m:g} m leaves no street within {half_m:g} m of the base station; make block_m "
                f"less than {2 * half_m:g} m",
                ("devices", "mobility", "block_m"),
            )
        streets_m = (np.arange(-pairs, pairs) + 0.5) * self.block_m
        stops_m = np.concatenate([[-half_m], streets_m, [half_m]])
        return _Drives(stops_m, self, self.speeds_m_s(len(positions_m), streams), streams)


class _Drives(Legs):
    """Devices on their way from stop to stop. A stop's column and row are indices into stops_m, the coordinates of
    the area's first edge, of the streets, and of the area's last edge."""

    def __init__(
        self, stops_m: np.ndarray, model: Manhattan, speeds_m_s: np.ndarray, streams: Streams
    ) -> None:
        devices = len(speeds_m_s)
        super().__init__(speeds_m_s)
        self._stops_m = stops_m
        self._left = model.left_probability
        self._right_or_left = model.left_probability + model.right_probability
        self._draws = UniformDraws(streams, devices)
        self._stop = np.zeros((2, devices), dtype=np.int64)  # the device's next stop
        self._heading = np.zeros(devices, dtype=np.int64)

    def begin(self, ids: np.ndarray) -> np.ndarray:
        along, street, heading = self._draws.uniform(ids, _START, 3)
        edge_m = self._stops_m[-1]
        along_m = edge_m * (2.0 * along - 1.0)
        street = 1 + (street * (len(self._stops_m) - 2)).astype(np.int64)
        self._heading[ids] = heading = (4 * heading).astype(np.int64)
        north_south = heading % 2
        # the last stop behind the device; the first leg leads to the next stop, without a turn
        ahead = np.searchsorted(self._stops_m, along_m)
        behind = np.where(heading < 2, ahead - 1, ahead)
        self._stop[north_south, ids] = behind
        self._stop[1 - north_south, ids] = street
        place_m = np.empty((2, len(ids)))
        place_m[north_south, np.arange(len(ids))] = along_m
        place_m[1 - north_south, np.arange(len(ids))] = self._stops_m[street]
        return place_m

    def next_leg(self, ids: np.ndarray, number: np.ndarray, here_m: np.ndarray, now_s: np.ndarray) -> Leg:
        stop, heading = self._stop[:, ids], self._heading[ids]
        (choice,) = self._draws.uniform(ids, number, 1)  # choice at the junction where the leg begins
        turn = np.where(choice < self._left, 1, np.where(choice < self._right_or_left, -1, 0))
        turn[number == 0] = 0
        at_edge = ((stop == 0) | (stop == len(self._stops_m) - 1)).any(axis=0) & (number > 0)
        heading = (heading + np.where(at_edge, 2, turn)) % 4
        stop += _AHEAD[:, heading]
        self._stop[:, ids], self._heading[ids] = stop, heading
        to_m = self._stops_m[stop]
        walk_s = np.abs(to_m - here_m).sum(axis=0) / self._speeds_m_s[ids]
        return Leg(to_m, walk_s, np.zeros(len(ids)))
