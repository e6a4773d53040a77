"""InH, an indoor office."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.path_loss import (
    ByState,
    Line,
    LossLines,
    PathLoss,
    Spreads,
    lg_spread,
    not_negative,
)
from edgefl.channel.path_loss._tr38901 import log_carrier_ghz
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class InH(PathLoss):
    """Indoor office, 1 m to 150 m (3D) and 0.5 GHz to 100 GHz, without a breakpoint.

    Probability of line of sight, mixed office: 1 up to 1.2 m, exp(-(d-1.2)/4.7) up to 6.5 m, then 0.32
    exp(-(d-6.5)/32.6). Where two of these formulas meet, the probability jumps by less than 0.004, as in the table.
    Left out: the table's open office.

    Source: 3GPP TR 38.901, Table 7.4.1-1 and 7.4.2-1. Ignored: floors, and walls of other buildings.
    """

    std_db: ClassVar[ByState] = ByState(3.0, 8.03)
    correlation_m: ClassVar[ByState | None] = ByState(10.0, 6.0)
    los_correlation_m: ClassVar[float] = 10.0
    bs_height_m: ClassVar[float] = 3.0
    ut_height_m: ClassVar[float] = 1.0
    # 24 dBm in 20 MHz (Report ITU-R M.2412, Table 5; TR 38.802, Table A.2.1-1)
    site_dbm_per_mhz: ClassVar[float | None] = 11.0
    # 3D distances, unlike the outdoor ranges
    nearest_m: ClassVar[float] = 1.0
    farthest_m: ClassVar[float] = 150.0

    def lines(self, *, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
        log_ghz = log_carrier_ghz(carrier_hz)
        clear = Line(32.4 + 20.0 * log_ghz, 17.3)
        obstructed = Line(17.3 + 24.9 * log_ghz, 38.3)
        return LossLines(los=(clear,), nlos=(clear, obstructed))

    def range_2d_m(self, *, bs_height_m: float, ut_height_m: float) -> tuple[float, float]:
        square = (bs_height_m - ut_height_m) ** 2
        nearest_m, farthest_m = (
            math.sqrt(max(0.0, end_m**2 - square)) for end_m in (self.nearest_m, self.farthest_m)
        )
        return nearest_m, farthest_m

    def los_probability(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        distance = not_negative(distance_2d_m)
        near = np.exp(-np.maximum(distance - 1.2, 0.0) / 4.7)
        return np.where(distance < 6.5, near, 0.32 * np.exp(-(distance - 6.5) / 32.6))

    def check_distances(self, distance_2d_m: FloatArray, distance_3d_m: FloatArray) -> None:
        not_negative(distance_2d_m)
        self._check_range("the 3D distance", distance_3d_m, self.nearest_m, self.farthest_m)

    def spreads(self, carrier_hz: float) -> Spreads:
        """Return the links' median spreads; carriers below 6 GHz count as 6 GHz (note 6)."""
        lg = math.log10(1.0 + max(carrier_hz / 1e9, 6.0))
        return Spreads(
            los=lg_spread(-7.692 - 0.01 * lg, 1.60, 2.228 - 1.43 * lg, k_factor_db=7.0),
            nlos=lg_spread(-7.173 - 0.28 * lg, 1.62, 1.08),
        )
