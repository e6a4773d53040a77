"""Urban macro (UMa), with base stations above the roofs."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy.typing as npt

from edgefl.channel.path_loss import ByState, Line, LossLines, PathLoss, Spreads, check_height, lg_spread
from edgefl.channel.path_loss._tr38901 import breakpoint_distance_m, log_carrier_ghz, outdoor_los_probability
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class UMa(PathLoss):
    """Urban macro, 10 m to 5 km (2D) and 0.5 GHz to 100 GHz, for devices up to 13 m high.

    Up to that height, C' = 0 and the environment height h_E is a constant 1 m. Probability of line of sight: 1 up to
    18 m, then 18/d + exp(-d/63) (1 - 18/d).

    The table is for base stations at 25 m; its formulas are also used for other heights above the lowest roofs, from
    12 m (4 floors of 3 m, TR 36.873, Table 6-1) to 150 m.

    Source: 3GPP TR 38.901, Table 7.4.1-1 and 7.4.2-1. Ignored: indoor penetration, and devices on higher floors.
    """

    std_db: ClassVar[ByState] = ByState(4.0, 6.0)
    correlation_m: ClassVar[ByState | None] = ByState(37.0, 50.0)
    los_correlation_m: ClassVar[float] = 50.0
    bs_height_m: ClassVar[float] = 25.0
    ut_height_m: ClassVar[float] = 1.5
    indoor_depth_m: ClassVar[float | None] = 25.0
    # macro sites, 53 dBm in 100 MHz: TR 38.830's 33 dBm/MHz in urban link budgets
    site_dbm_per_mhz: ClassVar[float | None] = 33.0
    nearest_m: ClassVar[float] = 10.0
    farthest_m: ClassVar[float] = 5000.0
    lowest_bs_m: ClassVar[float] = 12.0
    highest_bs_m: ClassVar[float] = 150.0
    # for higher devices, TR 38.901 draws the environment height at random
    highest_ut_m: ClassVar[float] = 13.0

    def lines(self, *, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
        log_ghz = log_carrier_ghz(carrier_hz)
        check_height(
            "bs_height_m",
            bs_height_m,
            self.lowest_bs_m,
            self.highest_bs_m,
            "UMa is for base stations above the roofs; for lower ones, use umi",
        )
        if not ut_height_m <= self.highest_ut_m:
            raise ValueError(
                f"ut_height_m must be at most {self.highest_ut_m:g} m in UMa, got {ut_height_m}: above that, TR"
                " 38.901 draws the environment height at random, which is not modelled; lower the devices"
            )
        breakpoint_m = breakpoint_distance_m(
            carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m
        )
        breakpoint_3d_square = breakpoint_m**2 + (bs_height_m - ut_height_m) ** 2
        near = Line(28.0 + 20.0 * log_ghz, 22.0)
        far = Line(28.0 + 20.0 * log_ghz - 9.0 * math.log10(breakpoint_3d_square), 40.0)
        obstructed = Line(13.54 + 20.0 * log_ghz - 0.6 * (ut_height_m - 1.5), 39.08)
        return LossLines(los=(near, far), nlos=(near, far, obstructed))

    def los_probability(self, distance_2d_m: npt.ArrayLike) -> FloatArray:
        return outdoor_los_probability(distance_2d_m, decay_m=63.0)

    def spreads(self, carrier_hz: float) -> Spreads:
        """Return the links' median spreads (zenith: at 100 m); carriers below 6 GHz count as 6 GHz (note 6)."""
        lg = math.log10(max(carrier_hz / 1e9, 6.0))
        return Spreads(
            los=lg_spread(-6.955 - 0.0963 * lg, 1.06 + 0.1114 * lg, 0.54, k_factor_db=9.0),
            nlos=lg_spread(-6.28 - 0.204 * lg, 1.5 - 0.1144 * lg, 0.69),
        )
