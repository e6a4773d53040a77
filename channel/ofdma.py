"""Shares of the band, and what a share carries.

Every function `<name>_share` here is a scheduler that a scenario can name.
"""

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from channel.units import FloatArray

# From x = 1/snr = 30 on, the continued fraction of e^x E1(x) cut at this depth is exact to 1e-15.
_FRACTION_FROM = 30.0
_FRACTION_DEPTH = 24


def equal_share(bandwidth_hz: float, devices: int) -> float:
    """Bandwidth in Hz of each device when the band is split equally among those with data to move.

    Raises:
        ValueError: fewer than one device, or no bandwidth.

    Left out: the grid of resource blocks; shares are real numbers.
    """
    if devices < 1:
        raise ValueError(f"devices must be >= 1 to share the band, got {devices}")
    if not bandwidth_hz > 0:
        raise ValueError(f"bandwidth_hz must be > 0, got {bandwidth_hz}")
    return bandwidth_hz / devices


def spectral_efficiency(snr: npt.ArrayLike) -> FloatArray:
    """log2(1 + snr) in bits/s/Hz; same shape. snr is linear, >= 0.

    Source: Shannon. Left out: modulation and coding, their highest rate, block errors.
    """
    # log1p keeps its precision where 1 + snr rounds to 1
    return np.log1p(np.asarray(snr, dtype=float)) / math.log(2.0)


def mean_snr(
    power_w: npt.ArrayLike, gain: npt.ArrayLike, noise_psd_w_hz: float, bandwidth_hz: npt.ArrayLike
) -> FloatArray:
    """Mean SNR P psi / (N0 W) of a link on its share of the band, before fading with E|h|^2 = 1.

    The transmitter puts its full power into the share: halving the share doubles the SNR on it. In the
    downlink the server does so towards every device at once. That is the journal paper's convention.

    Args:
        power_w: [devices] transmit power, or one for all.
        gain: [devices] large-scale gain psi, path loss and shadowing.
        noise_psd_w_hz: noise power spectral density N0.
        bandwidth_hz: [devices] share of the band, or one for all.

    Returns:
        [devices] linear SNR.

    Raises:
        ValueError: noise or bandwidth is not positive.

    Source: journal paper, eq. (24), (25). Left out: interference, noise figure.
    """
    bandwidth = np.asarray(bandwidth_hz, dtype=float)
    if not (noise_psd_w_hz > 0 and np.all(bandwidth > 0)):
        raise ValueError(f"noise_psd_w_hz and bandwidth_hz must be > 0, got {noise_psd_w_hz} and {bandwidth}")
    return np.asarray(power_w, dtype=float) * np.asarray(gain, dtype=float) / (noise_psd_w_hz * bandwidth)


def ergodic_rate(snr: npt.ArrayLike) -> FloatArray:
    """Mean of log2(1 + snr g) over Rayleigh fading, g ~ Exp(1): e^(1/snr) E1(1/snr) / ln 2.

    Args:
        snr: [devices] linear mean SNR, >= 0.

    Returns:
        [devices] bits/s/Hz, exact to about 1e-14 relative from vanishing to huge SNR.

    Raises:
        ValueError: an SNR is negative or not a number.

    Source: Alouini and Goldsmith, IEEE Trans. Veh. Technol. 1999.
    """
    gamma = np.asarray(snr, dtype=float)
    if not np.all(gamma >= 0):
        raise ValueError(f"snr must be >= 0, got {gamma}")
    with np.errstate(divide="ignore"):
        x = 1.0 / gamma
    # e^x overflows and E1 underflows for large x: each branch sees only arguments it can take
    small = np.minimum(x, _FRACTION_FROM)
    direct = np.exp(small) * special.exp1(small)
    return np.where(x < _FRACTION_FROM, direct, _scaled_exp1(np.maximum(x, _FRACTION_FROM))) / math.log(2.0)


def _scaled_exp1(x: FloatArray) -> FloatArray:
    """e^x E1(x) for large x: 1/(x+1 - 1/(x+3 - 4/(x+5 - 9/(x+7 - ...)))).

    Source: the even part of Abramowitz and Stegun, 5.1.22.
    """
    value = x + (2 * _FRACTION_DEPTH + 1)
    for k in range(_FRACTION_DEPTH, 0, -1):
        value = x + (2 * k - 1) - k * k / value
    return 1.0 / value
