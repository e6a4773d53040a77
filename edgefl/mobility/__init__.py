"""Mobility models: positions as functions of time, link and seed. Pure NumPy, no clock."""

from abc import abstractmethod
from typing import Protocol

import numpy as np

from edgefl.component import Component
from edgefl.rng import Streams


class Movement(Protocol):
    """The paths of all devices of one run."""

    moves: bool  # False lets the engine skip watching the cell edge

    def positions_m(self, time_s: float) -> np.ndarray:
        """[devices, 2] positions relative to the base station at any time >= 0, asked in any order."""

    def doppler_speeds_m_s(self) -> np.ndarray:
        """[devices] speed that sets each link's Doppler."""


class Mobility(Component):
    """Base of all mobility models."""

    @abstractmethod
    def area_radius_m(self, cell_radius_m: float) -> float:
        """Radius of the disc in which devices are dropped."""

    @abstractmethod
    def start(
        self, positions_m: np.ndarray, *, cell_radius_m: float, min_distance_m: float, streams: Streams
    ) -> Movement:
        """Movement of devices that are at positions_m [devices, 2] at time 0."""
