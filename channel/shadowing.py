"""Log-normal shadowing."""

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray


def draw_shadowing_db(rng: np.random.Generator, size: int, *, std_db: npt.ArrayLike) -> FloatArray:
    """Draw independent normal shadowing with mean 0 dB, added to the path loss: gain psi = 10^(-(PL + xi)/10).

    The caller uses the same numbers for a whole communication round, as the journal paper does in eq. (21).

    Args:
        size: number of devices to draw for.
        std_db: [size] standard deviation >= 0, or one value for all, such as the value of a path-loss model.

    Returns:
        [size] shadowing xi in dB.

    Raises:
        ValueError: a standard deviation is negative.

    Left out: correlation in space and between devices, which `edgefl.channel.large_scale` models.
    """
    std = np.asarray(std_db, dtype=float)
    if not np.all(std >= 0):
        raise ValueError(f"std_db must be >= 0, got {std}")
    return std * rng.standard_normal(size)
