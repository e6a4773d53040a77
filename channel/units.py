"""Decibels and the speed of light. Every conversion accepts a number or an array and keeps its shape."""

from typing import TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["FloatArray", "db_to_linear", "dbm_to_watt", "linear_to_db", "watt_to_dbm"]

FloatArray = npt.NDArray[np.float64]
Values = TypeVar("Values", float, FloatArray)

# TR 38.901, Table 7.4.1-1, note 1, and the journal paper round c to 3e8. The exact value would move the
# UMi breakpoint from 210.00 m to 210.15 m at 3.5 GHz, and path loss beyond it by 0.006 dB.
SPEED_OF_LIGHT_M_S = 3.0e8


def db_to_linear(value_db: Values) -> Values:
    """Return the power ratio of a value in dB."""
    return 10.0 ** (value_db / 10.0)


def linear_to_db(ratio: Values) -> Values:
    """Return a power ratio in dB.

    Raises:
        ValueError: a ratio is not positive.
    """
    if not np.all(ratio > 0):
        raise ValueError(f"a power ratio must be positive to have a value in dB, got {ratio}")
    return 10.0 * np.log10(ratio)


def dbm_to_watt(power_dbm: Values) -> Values:
    """Convert a power in dBm to W, or a density in dBm/Hz to W/Hz."""
    return db_to_linear(power_dbm) / 1000.0


def watt_to_dbm(power_w: Values) -> Values:
    """Convert a power in W to dBm.

    Raises:
        ValueError: a power is not positive.
    """
    return linear_to_db(power_w * 1000.0)
