"""Compute the log-distance path loss."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.component import parameter
from edgefl.channel.path_loss import ByState, Line, LossLines, PathLoss, not_negative
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class LogDistance(PathLoss):
    """Compute reference_db + 10 exponent log10(d3D / 1 m), at any carrier frequency, from 1 m.

    Source: Rappaport, Wireless Communications, 2002, section 4.9. Ignored: line of sight, antenna heights.
    """

    std_db: ClassVar[ByState] = ByState(8.0, 8.0)
    correlation_m: ClassVar[ByState | None] = ByState(50.0, 50.0)
    los_correlation_m: ClassVar[float] = 50.0
    bs_height_m: ClassVar[float] = 10.0
    ut_height_m: ClassVar[float] = 1.5

    exponent: float = parameter(3.0, ge=1.5, le=6, description="2 in free space, 2.7 to 5 in cities")
    reference_db: float = parameter(
        43.3, ge=0, le=120, description="loss at 1 m; in free space 43.3 at 3.5 GHz"
    )

    def lines(self, *, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
        line = Line(self.reference_db, 10.0 * self.exponent)
        return LossLines(los=(line,), nlos=(line,))

    def los_probability(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        return np.ones_like(not_negative(distance_2d_m))

    def check_distances(self, distance_2d_m: FloatArray, distance_3d_m: FloatArray) -> None:
        self._check_range("d3D", distance_3d_m, 1.0, np.inf)
