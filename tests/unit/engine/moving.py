"""Make devices whose positions are a function of time given by a test, and whose fading never changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
from pydantic import Field

from edgefl.mobility import Mobility, Movement


class Moving:
    """Devices whose positions [devices, 2] are a function of time."""

    moves = True

    def __init__(self, places_m: Callable[[float], Any]) -> None:
        self._places_m = places_m

    def positions_m(self, time_s: float) -> np.ndarray:
        return np.array(self._places_m(time_s))

    def doppler_speeds_m_s(self) -> np.ndarray:
        return np.zeros(len(self._places_m(0.0)))


class Going(Mobility):
    """Devices on the x axis that jump to given places at given times."""

    steps: list[list[tuple[float, float]]] = Field(
        description="each device's times, s, and x from then on, m"
    )

    def area_radius_m(self, cell_radius_m: float) -> float:
        return cell_radius_m

    def start(self, positions_m: np.ndarray, **_: Any) -> Movement:
        return Moving(
            lambda now_s: [[[x for from_s, x in own if from_s <= now_s][-1], 0.0] for own in self.steps]
        )
