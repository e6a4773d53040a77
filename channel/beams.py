"""The gain of a panel's beam towards paths that leave the panel in several directions."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgefl.channel.path_loss import Spread
from edgefl.channel.units import FloatArray, linear_to_db

# TR 38.802, Table A.2.1-1, 4 GHz: a panel of 4 x 8 elements, spaced by 0.5 wavelengths horizontally, 0.8 vertically
COLUMNS, ROWS = 8, 4
ACROSS, UPWARDS = 0.5, 0.8
# TS 38.214, Table 5.2.2.2.1-2: codebook beams per beam width, O1 = O2 = 4
OVERSAMPLING = 4
HALF_SECTOR_DEG = 60.0
_DIRECTIONS, _OFFSETS, _REACH = 121, 721, 6.0


@lru_cache(maxsize=128)  # cached, since loading a scenario calls this function
def beam_gain_db(spread: Spread) -> float:
    """Return the mean gain in dB of a panel's best beam over a single element.

    If the sines of the angles of a beam and of a path differ by x, a beam of N elements, d wavelengths apart,
    receives the path with gain |sum_n e^(2 pi i d n x)|^2 / N = 1 + 2 sum_k (1 - k / N) cos(2 pi d k x), k from 1 to
    N - 1. The gain is N for a path in the beam's direction, and 1 on average over all directions. The mean gain over
    the paths of a link is 1 + 2 sum_k (1 - k / N) c_k, where c_k is the mean of cos(2 pi d k x), the characteristic
    function of the paths' directions. Paths are distributed around the link's direction, with normal azimuths and
    Laplacian zeniths, so the gain falls from N to 1 as the spread grows. The direct path has the link's direction, so
    all of the spread is due to the other paths, whose own spread is larger by a factor of sqrt(K + 1). The beam is
    the codebook's beam nearest to the link's direction; its distance from that direction is uniform up to 1 / (2 O N
    d). The link's direction is uniform in the panel's 120 degrees. The gains of rows and columns multiply.

    Source: 3GPP TR 38.901, 7.5, steps 4 to 7 (distributions and spreads). Left out: clusters (a site would choose the
    strongest one); differences in spread between links; polarisation; the elements' own directivity.
    """
    direct = spread.direct
    among = math.sqrt(1.0 / (1.0 - direct)) if direct < 1.0 else 0.0
    scattered = _columns(among * spread.azimuth_deg) * _rows(among * spread.zenith_deg)
    return float(linear_to_db(direct * _columns(0.0) * _rows(0.0) + (1.0 - direct) * scattered))


def _columns(azimuth_deg: float) -> float:
    """Return the gain of a panel's columns for normally distributed azimuths around any direction of a sector."""
    towards = np.radians(np.linspace(-HALF_SECTOR_DEG, HALF_SECTOR_DEG, _DIRECTIONS))[:, None]
    offsets = np.linspace(-_REACH, _REACH, _OFFSETS)
    weights = np.exp(-(offsets**2) / 2.0)
    apart = np.sin(towards + math.radians(azimuth_deg) * offsets) - np.sin(towards)
    return _gain(COLUMNS, ACROSS, apart, np.broadcast_to(weights, apart.shape))


def _rows(zenith_deg: float) -> float:
    """Return the gain of a panel's rows for Laplacian zenith angles around the horizon."""
    offsets = np.linspace(-2.0 * _REACH, 2.0 * _REACH, 2 * _OFFSETS + 1)
    return _gain(
        ROWS,
        UPWARDS,
        np.sin(math.radians(zenith_deg) * offsets),
        np.exp(-math.sqrt(2.0) * np.abs(offsets)),
    )


def _gain(elements: int, spacing: float, apart: FloatArray, weights: npt.NDArray[np.float64]) -> float:
    """Return the mean gain of a line of elements towards paths; the sines of path and link differ by `apart`."""
    weights = weights / weights.sum()
    total = 1.0
    for k in range(1, elements):
        nearest = np.sinc(k / (elements * OVERSAMPLING))  # mean over the link's distance to the nearest beam
        mean = float((weights * np.cos(2.0 * math.pi * spacing * k * apart)).sum())
        total += 2.0 * (1.0 - k / elements) * mean * float(nearest)
    return total
