"""Formulas shared by the models of 3GPP TR 38.901."""

import math

import numpy as np
import numpy.typing as npt

from edgefl.channel.path_loss import not_negative
from edgefl.channel.units import SPEED_OF_LIGHT_M_S, FloatArray


def log_carrier_ghz(carrier_hz: float) -> float:
    """Return log10 of the carrier in GHz.

    Raises:
        ValueError: the carrier is outside 0.5 GHz to 100 GHz.
    """
    if not 0.5e9 <= carrier_hz <= 100e9:
        raise ValueError(f"carrier_hz must lie between 0.5e9 and 100e9 (TR 38.901), got {carrier_hz}")
    return math.log10(carrier_hz / 1e9)


def breakpoint_distance_m(
    *, carrier_hz: float, bs_height_m: float, ut_height_m: float, environment_height_m: float = 1.0
) -> float:
    """Return the breakpoint distance d'_BP in line of sight, 4 h'_BS h'_UT fc / c with h' = h - h_E.

    Raises:
        ValueError: an antenna is not above the environment height.

    Source: 3GPP TR 38.901, Table 7.4.1-1, note 1 (c = 3e8 m/s, h_E = 1 m in UMi, and in UMa up to h_UT = 13 m).
    """
    for name, height_m in (("bs_height_m", bs_height_m), ("ut_height_m", ut_height_m)):
        if not height_m > environment_height_m:
            raise ValueError(
                f"{name} must exceed the environment height {environment_height_m} m, got {height_m}"
            )
    effective_bs_m = bs_height_m - environment_height_m
    effective_ut_m = ut_height_m - environment_height_m
    return 4.0 * effective_bs_m * effective_ut_m * carrier_hz / SPEED_OF_LIGHT_M_S


def outdoor_los_probability(distance_2d_m: npt.ArrayLike, *, decay_m: float) -> FloatArray:
    """Return [devices] the probability of line of sight, 1 up to 18 m, then 18/d + exp(-d/decay) (1 - 18/d)."""
    # up to 18 m the formula is evaluated at 18 m, where it is exactly 1
    far = np.maximum(not_negative(distance_2d_m), 18.0)
    return 18.0 / far + np.exp(-far / decay_m) * (1.0 - 18.0 / far)
