"""Devices that stay at their initial positions."""

from typing import Literal

import numpy as np
from pydantic import Field

from edgefl.mobility import Mobility, Movement
from edgefl.rng import Streams


class Static(Mobility):
    """Fixed positions within the cell; a nominal speed determines the Doppler shift of the links.

    Source: the journal paper, Table I, which has positions of a Poisson point process, and fading at 10 m/s.
    """

    doppler_speed_m_s: float = Field(
        10.0, ge=0, le=150, description="nominal speed, which sets the Doppler shift of every link"
    )

    placement: Literal["area", "distance"] = Field(
        "area",
        description="area: positions are uniform over the area (J); distance: distances from the centre are uniform, "
        "so that devices are denser near the centre",
    )

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        if self.placement == "distance":
            positions_m = _by_distance(positions_m, min_distance_m, cell_radius_m)
        return _Fixed(positions_m, self.doppler_speed_m_s)


def _by_distance(positions_m: np.ndarray, inner_m: float, outer_m: float) -> np.ndarray:
    """Move points that are uniform over a ring's area so that distances become uniform; keep their directions."""
    distance_m = np.hypot(*positions_m.T)
    part = (distance_m**2 - inner_m**2) / (outer_m**2 - inner_m**2)
    moved_m = inner_m + np.clip(part, 0.0, 1.0) * (outer_m - inner_m)
    factor = np.divide(moved_m, distance_m, out=np.zeros_like(distance_m), where=distance_m > 0)
    return positions_m * factor[:, None]


class _Fixed:
    moves = False

    def __init__(self, positions_m: np.ndarray, speed_m_s: float) -> None:
        self._positions_m = positions_m
        self._speeds_m_s = np.full(len(positions_m), speed_m_s)

    def positions_m(self, time_s: float) -> np.ndarray:
        return self._positions_m

    def doppler_speeds_m_s(self) -> np.ndarray:
        return self._speeds_m_s
