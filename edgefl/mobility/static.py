"""Devices that stay where they were dropped."""

import numpy as np
from pydantic import Field

from edgefl.mobility import Mobility, Movement
from edgefl.rng import Streams


class Static(Mobility):
    """Fixed positions within the cell; a nominal speed determines the Doppler shift of the links.

    Source: the journal paper, Table I: positions of a Poisson point process, 10 m/s for the fading.
    """

    doppler_speed_m_s: float = Field(
        10.0, ge=0, le=150, description="speed for the Doppler shift of every link"
    )

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        return _Fixed(positions_m, self.doppler_speed_m_s)


class _Fixed:
    moves = False

    def __init__(self, positions_m: np.ndarray, speed_m_s: float) -> None:
        self._positions_m = positions_m
        self._speeds_m_s = np.full(len(positions_m), speed_m_s)

    def positions_m(self, time_s: float) -> np.ndarray:
        return self._positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return self._speeds_m_s
