"""Penetration loss of building walls and cars."""

import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray, db_to_linear

Walls = Literal["low_loss", "high_loss"]
# loss per metre inside a building, TR 38.901, Table 7.4.3-2
INSIDE_DB_PER_M = 0.5
# standard deviation of the loss, same table
STD_DB = {"low_loss": 4.4, "high_loss": 6.5}
# share of the outer wall that is glass; the rest is concrete
GLASS = {"low_loss": 0.3, "high_loss": 0.7}

# standard deviation of the loss into a car; the mean loss is 9 dB, or 20 dB with metallised windows; 38.901, 7.4.3.2
CAR_DB, CAR_STD_DB = 9.0, 5.0


def wall_loss_db(carrier_hz: float, walls: Walls) -> float:
    """Return the loss PL_tw of an outer wall of glass and concrete, averaged over buildings.

    The loss of plain glass is 2 + 0.2 f dB, of coated glass 23 + 0.3 f dB, and of concrete 5 + 4 f dB, with f in GHz.
    The power through the wall is the sum of the powers through its parts, minus 5 dB for oblique incidence.

    Args:
        walls: kind of the walls: low_loss with 30 % plain glass, or high_loss with 70 % coated glass.

    Raises:
        ValueError: the kind of walls is unknown.

    Source: 3GPP TR 38.901, Tables 7.4.3-1 and 7.4.3-2.
    """
    if walls not in get_args(Walls):
        raise ValueError(f"walls must be one of {', '.join(get_args(Walls))}, got {walls!r}")
    ghz = carrier_hz / 1e9
    glass_db = 2.0 + 0.2 * ghz if walls == "low_loss" else 23.0 + 0.3 * ghz
    concrete_db = 5.0 + 4.0 * ghz
    through = GLASS[walls] * db_to_linear(-glass_db) + (1.0 - GLASS[walls]) * db_to_linear(-concrete_db)
    return 5.0 - 10.0 * math.log10(through)


def penetration_loss_db(
    wall_db: npt.ArrayLike, std_db: npt.ArrayLike, *, inside_m: npt.ArrayLike, normal: npt.ArrayLike
) -> FloatArray:
    """Return the loss of indoor devices on top of the outdoor path loss: PL_tw + PL_in + N(0, sigma_P^2).

    Args:
        wall_db: [devices] loss of each device's walls, from `wall_loss_db`.
        std_db: [devices] standard deviation sigma_P of each device's loss, from STD_DB.
        inside_m: [devices] d_2D-in, the distance inside the building, which is the smaller of two uniform numbers
            between 0 and the building's depth, 25 m in UMi and UMa.
        normal: [devices] standard normal number of each device.

    Returns:
        [devices] loss in dB; below 0 for a very low normal number, which the source does not rule out.

    Source: 3GPP TR 38.901, section 7.4.3.1, eq. (7.4-2). Left out: adding the distance inside to the distance of the
    path loss, and the larger shadowing of links into buildings.
    """
    inside_db = INSIDE_DB_PER_M * np.asarray(inside_m, dtype=float)
    return np.asarray(wall_db) + inside_db + np.asarray(std_db) * np.asarray(normal)
