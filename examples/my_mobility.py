"""Move devices back and forth on a straight line."""

import numpy as np
from pydantic import Field

from edgefl.mobility import Mobility, Movement
from edgefl.rng import Streams


class Shuttle(Mobility):
    """Move shuttles back and forth along a line past the base station, each from its own starting point.

    The devices' random initial positions are ignored. If the line is longer than the cell, devices leave the cell and
    are absent until they return.
    """

    length_m: float = Field(400.0, gt=0, le=10_000, description="length of the line, centred at x = 0")
    offset_m: float = Field(20.0, ge=0, le=5000, description="distance of the line from the base station")
    speed_m_s: float = Field(10.0, gt=0, le=60, description="speed")

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        begin_m = streams("mobility", "shuttle").uniform(0.0, 2.0 * self.length_m, len(positions_m))
        return _Shuttles(self, begin_m)


class _Shuttles:
    moves = True

    def __init__(self, line: Shuttle, begin_m: np.ndarray) -> None:
        self._line, self._begin_m = line, begin_m

    def positions_m(self, time_s: float) -> np.ndarray:
        """Return [devices, 2]: forward in the first half of a lap, back in the second."""
        length_m = self._line.length_m
        driven_m = (self._begin_m + self._line.speed_m_s * time_s) % (2.0 * length_m)
        along_m = length_m / 2.0 - np.abs(driven_m - length_m)
        return np.stack([along_m, np.full_like(along_m, self._line.offset_m)], axis=1)

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.full(len(self._begin_m), self._line.speed_m_s)
