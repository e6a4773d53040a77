"""Path loss. Every function `<name>_path_loss_db` here is a model that a scenario can name.

What else belongs to a model (shadowing, correlation distances) is in `channel.path_loss_models`.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from channel.units import SPEED_OF_LIGHT_M_S, FloatArray

UMI_MIN_DISTANCE_M = 10.0
UMI_MAX_DISTANCE_M = 5000.0
UMA_MIN_DISTANCE_M = 10.0
UMA_MAX_DISTANCE_M = 5000.0
# UMa: above this height of the device, TR 38.901 draws the environment height h_E at random
UMA_MAX_UT_HEIGHT_M = 13.0
# InH: in three dimensions, unlike the outdoor ranges
INH_MIN_DISTANCE_3D_M = 1.0
INH_MAX_DISTANCE_3D_M = 150.0
# hypot() of a position drawn at exactly 10 m may fall short of 10 m by rounding
DISTANCE_ROUNDING = 1e-9


class Line(NamedTuple):
    """Path loss that is straight over the logarithm of distance: intercept_db + slope_db log10 d3D."""

    intercept_db: float  # at d3D = 1 m
    slope_db: float  # per decade


class LossLines(NamedTuple):
    """A path loss as the greatest of lines, in line of sight and without it.

    All models here have this shape. Beyond the breakpoint PL2 applies in place of PL1: it is steeper and
    meets PL1 exactly there (d3D^2 = d'_BP^2 + (h_BS - h_UT)^2), so it is the greater of the two. NLoS is
    defined as the greater of its own line and of LoS.
    """

    los: tuple[Line, ...]
    nlos: tuple[Line, ...]


def los_probability_umi(distance_2d_m: npt.ArrayLike) -> FloatArray:
    """Probability that a link is in line of sight, UMi street canyon.

    Args:
        distance_2d_m: [devices] horizontal distance, >= 0.

    Returns:
        [devices] probability: 1 up to 18 m, then 18/d + exp(-d/36) (1 - 18/d).

    Raises:
        ValueError: a distance is negative.

    Source: 3GPP TR 38.901, Table 7.4.2-1. Its correlation in space is in `channel.large_scale`.
    """
    return _outdoor_los_probability(distance_2d_m, decay_m=36.0)


def los_probability_uma(distance_2d_m: npt.ArrayLike) -> FloatArray:
    """Probability that a link is in line of sight, UMa, for devices up to 13 m high (C' = 0).

    Args:
        distance_2d_m: [devices] horizontal distance, >= 0.

    Returns:
        [devices] probability: 1 up to 18 m, then 18/d + exp(-d/63) (1 - 18/d).

    Raises:
        ValueError: a distance is negative.

    Source: 3GPP TR 38.901, Table 7.4.2-1. Left out: the factor 1 + C'(h_UT) ... of devices above 13 m.
    """
    return _outdoor_los_probability(distance_2d_m, decay_m=63.0)


def los_probability_inh(distance_2d_m: npt.ArrayLike, *, open_office: bool = False) -> FloatArray:
    """Probability that a link is in line of sight, indoor office.

    Args:
        distance_2d_m: [devices] horizontal distance, >= 0.
        open_office: the table's open office in place of its mixed office.

    Returns:
        [devices] probability. Mixed: 1 up to 1.2 m, exp(-(d-1.2)/4.7) up to 6.5 m, then
        0.32 exp(-(d-6.5)/32.6). Open: 1 up to 5 m, exp(-(d-5)/70.8) up to 49 m, then
        0.54 exp(-(d-49)/211.7). Both jump by less than 0.004 between their pieces, as in the table.

    Raises:
        ValueError: a distance is negative.

    Source: 3GPP TR 38.901, Table 7.4.2-1.
    """
    distance = _checked_not_negative(distance_2d_m)
    if open_office:
        near = np.exp(-np.maximum(distance - 5.0, 0.0) / 70.8)
        return np.where(distance <= 49.0, near, 0.54 * np.exp(-(distance - 49.0) / 211.7))
    near = np.exp(-np.maximum(distance - 1.2, 0.0) / 4.7)
    return np.where(distance < 6.5, near, 0.32 * np.exp(-(distance - 6.5) / 32.6))


def breakpoint_distance_m(
    *, carrier_hz: float, bs_height_m: float, ut_height_m: float, environment_height_m: float = 1.0
) -> float:
    """Distance d'_BP where the slope in line of sight changes: 4 h'_BS h'_UT fc / c, h' = h - h_E.

    Raises:
        ValueError: an antenna is not above the environment height.

    Source: 3GPP TR 38.901, Table 7.4.1-1, note 1 (c = 3e8 m/s, h_E = 1 m in UMi, and in UMa up to
    h_UT = 13 m).
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
    _check_range("UMi", "distance_2d_m", distance, UMI_MIN_DISTANCE_M, UMI_MAX_DISTANCE_M)
    lines = umi_loss_lines(carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m)
    return _path_loss(np.hypot(distance, bs_height_m - ut_height_m), line_of_sight, lines)


def umi_loss_lines(*, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
    """PL1, PL2 and PL' of UMi street canyon.

    Raises:
        ValueError: the carrier or a height is outside the model's range.

    Source: 3GPP TR 38.901, Table 7.4.1-1.
    """
    log_ghz = _log_carrier_ghz(carrier_hz)
    breakpoint_m = breakpoint_distance_m(
        carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m
    )
    breakpoint_3d_square = breakpoint_m**2 + (bs_height_m - ut_height_m) ** 2
    near = Line(32.4 + 20.0 * log_ghz, 21.0)
    far = Line(32.4 + 20.0 * log_ghz - 9.5 * math.log10(breakpoint_3d_square), 40.0)
    obstructed = Line(22.4 + 21.3 * log_ghz - 0.3 * (ut_height_m - 1.5), 35.3)
    return LossLines(los=(near, far), nlos=(near, far, obstructed))


def uma_path_loss_db(
    distance_2d_m: npt.ArrayLike,
    *,
    carrier_hz: float,
    line_of_sight: npt.ArrayLike = True,
    bs_height_m: float = 25.0,
    ut_height_m: float = 1.5,
) -> FloatArray:
    """UMa (urban macro) path loss without shadowing.

    Args:
        distance_2d_m: [devices] horizontal distance, 10 m to 5 km.
        carrier_hz: 0.5 GHz to 100 GHz.
        line_of_sight: [devices] bool, or one for all.
        ut_height_m: at most 13 m, so that C' = 0 and the environment height h_E is 1 m, not random.

    Returns:
        [devices] path loss in dB.

    Raises:
        ValueError: a distance, the carrier or a height is outside the model's range.

    Source: 3GPP TR 38.901, Table 7.4.1-1. Ignored: indoor penetration, devices on floors above 13 m.
    """
    distance = np.asarray(distance_2d_m, dtype=float)
    _check_range("UMa", "distance_2d_m", distance, UMA_MIN_DISTANCE_M, UMA_MAX_DISTANCE_M)
    lines = uma_loss_lines(carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m)
    return _path_loss(np.hypot(distance, bs_height_m - ut_height_m), line_of_sight, lines)


def uma_loss_lines(*, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
    """PL1, PL2 and PL' of UMa.

    Raises:
        ValueError: the carrier or a height is outside the model's range.

    Source: 3GPP TR 38.901, Table 7.4.1-1.
    """
    log_ghz = _log_carrier_ghz(carrier_hz)
    if not ut_height_m <= UMA_MAX_UT_HEIGHT_M:
        raise ValueError(
            f"ut_height_m must be at most {UMA_MAX_UT_HEIGHT_M:g} m in UMa, got {ut_height_m}: above, "
            "TR 38.901 draws the environment height at random, which is left out; lower the devices"
        )
    breakpoint_m = breakpoint_distance_m(
        carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m
    )
    breakpoint_3d_square = breakpoint_m**2 + (bs_height_m - ut_height_m) ** 2
    near = Line(28.0 + 20.0 * log_ghz, 22.0)
    far = Line(28.0 + 20.0 * log_ghz - 9.0 * math.log10(breakpoint_3d_square), 40.0)
    obstructed = Line(13.54 + 20.0 * log_ghz - 0.6 * (ut_height_m - 1.5), 39.08)
    return LossLines(los=(near, far), nlos=(near, far, obstructed))


def inh_path_loss_db(
    distance_2d_m: npt.ArrayLike,
    *,
    carrier_hz: float,
    line_of_sight: npt.ArrayLike = True,
    bs_height_m: float = 3.0,
    ut_height_m: float = 1.0,
) -> FloatArray:
    """InH-Office (indoor hotspot) path loss without shadowing. It has no breakpoint.

    Args:
        distance_2d_m: [devices] horizontal distance; the 3D distance must lie within 1 m and 150 m.
        carrier_hz: 0.5 GHz to 100 GHz.
        line_of_sight: [devices] bool, or one for all.

    Returns:
        [devices] path loss in dB.

    Raises:
        ValueError: a distance or the carrier is outside the model's range.

    Source: 3GPP TR 38.901, Table 7.4.1-1. Ignored: floors, walls of other buildings.
    """
    distance_3d = np.hypot(_checked_not_negative(distance_2d_m), bs_height_m - ut_height_m)
    _check_range("InH", "the 3D distance", distance_3d, INH_MIN_DISTANCE_3D_M, INH_MAX_DISTANCE_3D_M)
    lines = inh_loss_lines(carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m)
    return _path_loss(distance_3d, line_of_sight, lines)


def inh_loss_lines(*, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
    """PL and PL' of InH-Office; the heights do not matter beyond the 3D distance.

    Raises:
        ValueError: the carrier is outside the model's range.

    Source: 3GPP TR 38.901, Table 7.4.1-1.
    """
    log_ghz = _log_carrier_ghz(carrier_hz)
    clear = Line(32.4 + 20.0 * log_ghz, 17.3)
    obstructed = Line(17.3 + 24.9 * log_ghz, 38.3)
    return LossLines(los=(clear,), nlos=(clear, obstructed))


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
    lines = free_space_loss_lines(carrier_hz=carrier_hz, bs_height_m=bs_height_m, ut_height_m=ut_height_m)
    return _path_loss(distance_3d_m, True, lines)


def free_space_loss_lines(*, carrier_hz: float, bs_height_m: float, ut_height_m: float) -> LossLines:
    """Free-space loss, the same in both states; the heights do not matter beyond the 3D distance.

    Raises:
        ValueError: the carrier is not positive.
    """
    if not carrier_hz > 0:
        raise ValueError(f"carrier_hz must be > 0, got {carrier_hz}")
    line = Line(20.0 * math.log10(4.0 * math.pi * carrier_hz / SPEED_OF_LIGHT_M_S), 20.0)
    return LossLines(los=(line,), nlos=(line,))


def _outdoor_los_probability(distance_2d_m: npt.ArrayLike, decay_m: float) -> FloatArray:
    # up to 18 m the formula is evaluated at 18 m, where it is exactly 1
    far = np.maximum(_checked_not_negative(distance_2d_m), 18.0)
    return 18.0 / far + np.exp(-far / decay_m) * (1.0 - 18.0 / far)


def _checked_not_negative(distance_2d_m: npt.ArrayLike) -> FloatArray:
    distance = np.asarray(distance_2d_m, dtype=float)
    if not np.all(distance >= 0):
        raise ValueError(f"distance_2d_m must be >= 0, got {distance}")
    return distance


def _log_carrier_ghz(carrier_hz: float) -> float:
    if not 0.5e9 <= carrier_hz <= 100e9:
        raise ValueError(f"carrier_hz must lie within 0.5e9 and 100e9 (TR 38.901), got {carrier_hz}")
    return math.log10(carrier_hz / 1e9)


def _path_loss(distance_3d_m: FloatArray, line_of_sight: npt.ArrayLike, lines: LossLines) -> FloatArray:
    log_distance = np.log10(distance_3d_m)
    los, nlos = (
        np.max([line.intercept_db + line.slope_db * log_distance for line in state], axis=0)
        for state in lines
    )
    return np.where(line_of_sight, los, nlos)


def _check_range(model: str, what: str, distance: FloatArray, nearest_m: float, farthest_m: float) -> None:
    inside = (distance >= nearest_m * (1.0 - DISTANCE_ROUNDING)) & (
        distance <= farthest_m * (1.0 + DISTANCE_ROUNDING)
    )
    if not np.all(inside):
        worst = np.atleast_1d(distance)[~np.atleast_1d(inside)][0]
        raise ValueError(
            f"{model} path loss holds for {what} from {nearest_m:g} to {farthest_m:g} m, got {worst:g}: "
            "keep devices on that ring, or use free_space"
        )
