"""Path loss. Every function `<name>_path_loss_db` here is a model that a scenario can name."""

import math

import numpy as np
import numpy.typing as npt

from channel.units import SPEED_OF_LIGHT_M_S, FloatArray

UMI_MIN_DISTANCE_M = 10.0
UMI_MAX_DISTANCE_M = 5000.0
# hypot() of a position drawn at exactly 10 m may fall short of 10 m by rounding
DISTANCE_ROUNDING = 1e-9


def los_probability_umi(distance_2d_m: npt.ArrayLike) -> FloatArray:
    """Probability that a link is in line of sight, UMi street canyon.

    Args:
        distance_2d_m: [devices] horizontal distance, >= 0.

    Returns:
        [devices] probability: 1 up to 18 m, then 18/d + exp(-d/36) (1 - 18/d).

    Raises:
        ValueError: a distance is negative.

    Source: 3GPP TR 38.901, Table 7.4.2-1. Ignored: the state's correlation in space (section 7.6.3.3).
    """
    distance = np.asarray(distance_2d_m, dtype=float)
    if not np.all(distance >= 0):
        raise ValueError(f"distance_2d_m must be >= 0, got {distance}")
    # up to 18 m the formula is evaluated at 18 m, where it is exactly 1
    far = np.maximum(distance, 18.0)
    return 18.0 / far + np.exp(-far / 36.0) * (1.0 - 18.0 / far)


def breakpoint_distance_m(
    *, carrier_hz: float, bs_height_m: float, ut_height_m: float, environment_height_m: float = 1.0
) -> float:
    """Distance d'_BP at which the UMi line-of-sight slope changes: 4 h'_BS h'_UT fc / c, h' = h - h_E.

    Raises:
        ValueError: an antenna is not above the environment height.

    Source: 3GPP TR 38.901, Table 7.4.1-1, note 1 (c = 3e8 m/s, h_E = 1 m in UMi).
    """
    for name, height_m in (("bs_height_m", bs_height_m), ("ut_height_m", ut_height_m)):
        if not height_m > environment_height_m:
            raise ValueError(
                f"{name} must exceed the environment height {environment_height_m} m, got {height_m}"
            )
    effective_bs_m = bs_height_m - environment_height_m
    effective_ut_m = ut_height_m - environment_height_m
    return 4.0 * effective_bs_m * effective_ut_m * carrier_hz / SPEED_OF_LIGHT_M_S


def umi_path_loss_db(
    distance_2d_m: npt.ArrayLike,
    *,
    carrier_hz: float,
    line_of_sight: npt.ArrayLike = True,
    bs_height_m: float = 10.0,
    ut_height_m: float = 1.5,
) -> FloatArray:
    """UMi street-canyon path loss without shadowing.

    Args:
        distance_2d_m: [devices] horizontal distance, 10 m to 5 km.
        carrier_hz: 0.5 GHz to 100 GHz.
        line_of_sight: [devices] bool, or one for all.

    Returns:
        [devices] path loss in dB.

    Raises:
        ValueError: a distance, the carrier or a height is outside the model's range.

    Source: 3GPP TR 38.901, Table 7.4.1-1. Ignored: indoor penetration, street orientation.
    """
    distance = np.asarray(distance_2d_m, dtype=float)
    _check_umi_distance(distance)
    if not 0.5e9 <= carrier_hz <= 100e9:
        raise ValueError(f"carrier_hz must lie within 0.5e9 and 100e9 (TR 38.901), got {carrier_hz}")
    breakpoint_m = breakpoint_distance_m(
        carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m
    )
    height_difference_m = bs_height_m - ut_height_m
    log_distance_3d = np.log10(np.hypot(distance, height_difference_m))
    log_carrier_ghz = math.log10(carrier_hz / 1e9)

    near = 32.4 + 21.0 * log_distance_3d + 20.0 * log_carrier_ghz
    far = (
        32.4
        + 40.0 * log_distance_3d
        + 20.0 * log_carrier_ghz
        - 9.5 * math.log10(breakpoint_m**2 + height_difference_m**2)
    )
    los = np.where(distance <= breakpoint_m, near, far)
    nlos = 35.3 * log_distance_3d + 22.4 + 21.3 * log_carrier_ghz - 0.3 * (ut_height_m - 1.5)
    return np.where(line_of_sight, los, np.maximum(los, nlos))


def free_space_path_loss_db(
    distance_2d_m: npt.ArrayLike,
    *,
    carrier_hz: float,
    line_of_sight: npt.ArrayLike = True,
    bs_height_m: float = 10.0,
    ut_height_m: float = 1.5,
) -> FloatArray:
    """Free-space path loss between isotropic antennas, 20 log10(4 pi d3D fc / c).

    Args:
        distance_2d_m: [devices] horizontal distance, >= 0.
        carrier_hz: > 0.
        line_of_sight: ignored; nothing stands in free space. It is here so that models are interchangeable.

    Returns:
        [devices] path loss in dB.

    Raises:
        ValueError: a distance is negative, the carrier is not positive, or the antennas coincide.

    Source: Friis, Proc. IRE 1946. Ignored: ground, obstacles, near field.
    """
    distance = np.asarray(distance_2d_m, dtype=float)
    distance_3d_m = np.hypot(distance, bs_height_m - ut_height_m)
    if not (np.all(distance >= 0) and np.all(distance_3d_m > 0)):
        raise ValueError(f"distance_2d_m must be >= 0 and the antennas apart, got {distance}")
    if not carrier_hz > 0:
        raise ValueError(f"carrier_hz must be > 0, got {carrier_hz}")
    return 20.0 * np.log10(4.0 * math.pi * distance_3d_m * carrier_hz / SPEED_OF_LIGHT_M_S)


def _check_umi_distance(distance: FloatArray) -> None:
    nearest = UMI_MIN_DISTANCE_M * (1.0 - DISTANCE_ROUNDING)
    farthest = UMI_MAX_DISTANCE_M * (1.0 + DISTANCE_ROUNDING)
    outside = ~((distance >= nearest) & (distance <= farthest))
    if np.any(outside):
        worst = np.atleast_1d(distance)[np.atleast_1d(outside)][0]
        raise ValueError(
            f"UMi path loss holds for distance_2d_m from {UMI_MIN_DISTANCE_M:g} to {UMI_MAX_DISTANCE_M:g} m, "
            f"got {worst:g}: keep devices on that ring, or use free_space"
        )
