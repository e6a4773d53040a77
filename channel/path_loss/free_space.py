"""Free space, without obstacles between the antennas."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.path_loss import ByState, Line, LossLines, PathLoss
from edgefl.channel.units import SPEED_OF_LIGHT_M_S, FloatArray


@dataclass(frozen=True)
class FreeSpace(PathLoss):
    """Loss between isotropic antennas, 20 log10(4 pi d3D fc / c), at any distance and carrier.

    Line of sight is certain, and the loss does not depend on it. There is no shadowing.

    Source: Friis, Proc. IRE 1946. Ignored: ground, obstacles, and near field.
    """

    std_db: ClassVar[ByState] = ByState(0.0, 0.0)
    correlation_m: ClassVar[ByState | None] = None
    los_correlation_m: ClassVar[float] = 50.0
    bs_height_m: ClassVar[float] = 10.0
    ut_height_m: ClassVar[float] = 1.5

    def lines(self, *, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
        if not carrier_hz > 0:
            raise ValueError(f"carrier_hz must be > 0, got {carrier_hz}")
        line = Line(20.0 * math.log10(4.0 * math.pi * carrier_hz / SPEED_OF_LIGHT_M_S), 20.0)
        return LossLines(los=(line,), nlos=(line,))

    def los_probability(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        return np.ones_like(np.asarray(distance_2d_m, dtype=float))

    def check_distances(self, distance_2d_m: FloatArray, distance_3d_m: FloatArray) -> None:
        if not (np.all(distance_2d_m >= 0) and np.all(distance_3d_m > 0)):
            raise ValueError(f"distance_2d_m must be >= 0, and antennas must be apart, got {distance_2d_m}")
