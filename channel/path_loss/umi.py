"""Urban micro (UMi) street canyon, with base stations below the roofs."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from edgefl.channel.path_loss import ByState, Line, LossLines, PathLoss, Spreads, check_height, lg_spread
from edgefl.channel.path_loss._tr38901 import breakpoint_distance_m, log_carrier_ghz, outdoor_los_probability
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class UMi(PathLoss):
    """UMi street canyon, 10 m to 5 km (2D) and 0.5 GHz to 100 GHz.

    Probability of line of sight: 1 up to 18 m, then 18/d + exp(-d/36) (1 - 18/d).

    The table is for base stations at 10 m; its formulas are also used for other heights below the highest roofs, 24 m
    (8 floors of 3 m, TR 36.873, Table 6-1).

    Source: 3GPP TR 38.901, Table 7.4.1-1 and 7.4.2-1. Ignored: indoor penetration, and street orientation.
    """

    std_db: ClassVar[ByState] = ByState(4.0, 7.82)
    correlation_m: ClassVar[ByState | None] = ByState(10.0, 13.0)
    los_correlation_m: ClassVar[float] = 50.0
    bs_height_m: ClassVar[float] = 10.0
    ut_height_m: ClassVar[float] = 1.5
    indoor_depth_m: ClassVar[float | None] = 25.0
    # small cells, 44 dBm in 100 MHz: TR 38.875's 24 dBm/MHz at 4 GHz, and 44 dBm in TR 38.901, Table 7.8-1
    site_dbm_per_mhz: ClassVar[float] = 24.0
    nearest_m: ClassVar[float] = 10.0
    farthest_m: ClassVar[float] = 5000.0
    highest_bs_m: ClassVar[float] = 24.0

    def lines(self, *, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
        log_ghz = log_carrier_ghz(carrier_hz)
        check_height(
            "bs_height_m",
            bs_height_m,
            0.0,
            self.highest_bs_m,
            "UMi is for base stations below the roofs; for higher ones, use uma",
        )
        breakpoint_m = breakpoint_distance_m(
            carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m
        )
        breakpoint_3d_square = breakpoint_m**2 + (bs_height_m - ut_height_m) ** 2
        near = Line(32.4 + 20.0 * log_ghz, 21.0)
        far = Line(32.4 + 20.0 * log_ghz - 9.5 * math.log10(breakpoint_3d_square), 40.0)
        obstructed = Line(22.4 + 21.3 * log_ghz - 0.3 * (ut_height_m - 1.5), 35.3)
        return LossLines(los=(near, far), nlos=(near, far, obstructed))

    def los_probability(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        return outdoor_los_probability(distance_2d_m, decay_m=36.0)

    def spreads(self, carrier_hz: float) -> Spreads:
        """Return the links' median spreads (zenith: at 100 m); carriers below 2 GHz count as 2 GHz (note 7)."""
        lg = math.log10(1.0 + max(carrier_hz / 1e9, 2.0))
        return Spreads(
            los=lg_spread(-7.14 - 0.24 * lg, 1.21 - 0.05 * lg, -0.21, k_factor_db=9.0),
            nlos=lg_spread(-6.83 - 0.24 * lg, 1.53 - 0.23 * lg, -0.11),
        )
