"""Parameters for the area's size and the devices' speeds, shared by several mobility models."""

from typing import Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.mobility import Mobility
from edgefl.rng import Streams


class LargerArea(Mobility):
    """Base class of models with an area that may be larger than the cell.

    A device outside the cell is absent; crossing the edge is a departure or an arrival.
    """

    area_factor: float = Field(1.3, ge=1, le=10, description="area radius relative to the cell radius")

    def area_radius_m(self, cell_radius_m: float) -> float:
        return self.area_factor * cell_radius_m


class Walkers(LargerArea):
    """Base class of models with devices that draw a speed once, uniformly, and keep it.

    The mean speed then does not decay with time, as it does if every leg draws a new speed (Yoon, Liu and Noble,
    INFOCOM 2003), and a link has a single Doppler shift.
    """

    speed_min_m_s: float = Field(1.0, ge=1e-3, le=60, description="lowest speed of a device")
    speed_max_m_s: float = Field(15.0, ge=1e-3, le=60, description="highest speed of a device")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.speed_min_m_s > self.speed_max_m_s:
            raise ValueError(
                f"speed_min_m_s {self.speed_min_m_s} must not exceed speed_max_m_s {self.speed_max_m_s}"
            )
        return self

    def speeds_m_s(self, devices: int, streams: Streams) -> np.ndarray:
        """Draw the speed of each device [devices], m/s."""
        return streams("mobility", "speed").uniform(self.speed_min_m_s, self.speed_max_m_s, size=devices)
