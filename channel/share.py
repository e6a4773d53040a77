"""Compute SNR and rate on a share of the band; `edgefl.channel.schedulers` decides the shares."""

import math
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from edgefl.channel.units import FloatArray, Values, db_to_linear

__all__ = ["ergodic_rate", "noise_w", "share_snr", "spectral_efficiency"]

# The rule by which a transmitter spreads its power. `full`: all power goes into its share of the band, so half the
# band has twice the SNR (as in the journal paper; in the downlink, the server sends at full power to every device at
# once). `per_resource_block`: power is spread evenly over the whole band, so the SNR is the same on every share.
PowerRule = Literal["full", "per_resource_block"]
_POWER_RULES = get_args(PowerRule)

# For x = 1/snr >= 30, the continued fraction of e^x E1(x) truncated at this depth is accurate to 1e-15.
_FRACTION_FROM = 30.0
_FRACTION_DEPTH = 24

_LN2 = math.log(2.0)


def noise_w(
    noise_psd_w_hz: float,
    bandwidth_hz: npt.ArrayLike,
    *,
    noise_figure_db: float = 0.0,
    interference_margin_db: npt.ArrayLike = 0.0,
) -> FloatArray:
    """Compute the noise N0 W F M in a share of the band; a link's mean SNR is P psi over this noise.

    Args:
        noise_psd_w_hz: noise power spectral density N0.
        bandwidth_hz: [devices] bandwidth W of each share of the band, or one value for all.
        noise_figure_db: noise figure F of the receiver, >= 0.
        interference_margin_db: M >= 0, ratio of noise plus interference to noise: [devices] or one value for all.

    Returns:
        [devices] noise power, W.

    Raises:
        ValueError: noise or bandwidth is not positive, or noise figure or margin is negative.

    Source: journal paper, eq. (24), (25), for F = M = 1. Left out: interference that varies over time.
    """
    bandwidth = np.asarray(bandwidth_hz, dtype=float)
    margin_db = np.asarray(interference_margin_db, dtype=float)
    if not (noise_psd_w_hz > 0 and np.all(bandwidth > 0)):
        raise ValueError(f"noise_psd_w_hz and bandwidth_hz must be > 0, got {noise_psd_w_hz} and {bandwidth}")
    if not (noise_figure_db >= 0 and np.all(margin_db >= 0)):
        raise ValueError(
            "noise_figure_db and interference_margin_db must be >= 0, since they only raise the noise, "
            f"got {noise_figure_db} and {margin_db}"
        )
    noise: FloatArray = noise_psd_w_hz * bandwidth * db_to_linear(noise_figure_db + margin_db)
    return noise


def spectral_efficiency(snr: npt.ArrayLike, cap: float | None = None) -> FloatArray:
    """Compute min(log2(1 + snr), cap) in bits/s/Hz, in the shape of `snr`.

    Args:
        snr: linear SNR, >= 0.
        cap: efficiency of the highest modulation, > 0, e.g. 7.4 for 256-QAM at code rate 0.93, or None for no limit.

    Raises:
        ValueError: the cap is not positive.

    Source: Shannon. Left out: steps between modulations, coding losses, and block errors.
    """
    # log1p keeps its precision where 1 + snr rounds to 1
    efficiency = np.log1p(np.asarray(snr, dtype=float)) / _LN2
    return efficiency if cap is None else np.minimum(efficiency, check_cap(cap))


def ergodic_rate(snr: npt.ArrayLike, cap: float | None = None) -> FloatArray:
    """Compute the mean of min(log2(1 + snr g), cap) over Rayleigh fading, g ~ Exp(1).

    Without a cap the mean is e^x E1(x) / ln 2, x = 1/snr. With a cap, P(log2(1 + snr g) > t) = e^(-x (2^t - 1)), so

        integral_0^cap e^(-x (2^t - 1)) dt = e^x (E1(x) - E1(x 2^cap)) / ln 2.

    Args:
        snr: [devices] linear mean SNR, >= 0.
        cap: highest efficiency in bits/s/Hz, > 0, or None for no limit.

    Returns:
        [devices] mean rate in bits/s/Hz, with a relative error of about 1e-14 for any SNR.

    Raises:
        ValueError: an SNR is negative or not a number, or the cap is not positive.

    Source: Alouini and Goldsmith, IEEE Trans. Veh. Technol. 1999.
    """
    if isinstance(snr, float):
        # single transfers pass floats, for which plain arithmetic is ten times as fast
        return np.float64(_ergodic_rate_of(snr, cap))
    gamma = np.asarray(snr, dtype=float)
    if not np.all(gamma >= 0):
        raise ValueError(f"snr must be >= 0, got {gamma}")
    with np.errstate(divide="ignore"):
        x = 1.0 / gamma
    nats = scaled_exp1(x)
    if cap is not None:
        with np.errstate(over="ignore", invalid="ignore"):
            top = np.expm1(check_cap(cap) * _LN2)
            nats = nats - np.exp(-x * top) * scaled_exp1(x * (1.0 + top))
        # at infinite SNR the line above subtracts infinity from infinity
        nats = np.where(x == 0, cap * _LN2, nats)
    return nats / _LN2


def share_snr(share: npt.ArrayLike, snr: npt.ArrayLike, power: PowerRule = "full") -> FloatArray:
    """Compute the SNR on a share of the band: snr / b, or snr with power per resource block; 0 for a share of 0.

    Args:
        share: share b of the band, 0 to 1.
        snr: SNR on the whole band with full power; broadcasts with share.

    Raises:
        ValueError: the power rule is unknown.
    """
    check_power_rule(power)
    if isinstance(share, float) and isinstance(snr, float):
        # single transfers pass floats, for which plain arithmetic is ten times as fast here
        return np.float64((snr / share if power == "full" else snr) if share > 0 else 0.0)
    part, whole = np.broadcast_arrays(np.asarray(share, dtype=float), np.asarray(snr, dtype=float))
    rest = part if power == "full" else np.ones_like(part)
    return np.divide(whole, rest, out=np.zeros(part.shape), where=part > 0)


def limited_shares(share: npt.ArrayLike, most: npt.ArrayLike) -> FloatArray:
    """Limit shares of a band to each device's maximum; other devices get the excess in proportion to their shares.

    Args:
        share: [devices] share of each device, 0 to 1, with a sum of at most 1.
        most: [devices] largest share that each device may have, above 0.

    Returns:
        [devices] shares with the same sum, or a smaller sum if all devices are at their maximum.
    """
    wanted, limits = np.asarray(share, dtype=float), np.asarray(most, dtype=float)
    given = np.minimum(wanted, limits)
    for _ in range(len(wanted)):
        open_, over = (given < limits) & (wanted > 0), wanted.sum() - given.sum()
        if not (open_.any() and over > 1e-12):
            break
        given = np.where(open_, np.minimum(limits, given * (1.0 + over / given[open_].sum())), given)
    return given


def check_cap(cap: float) -> float:
    """Check a cap on the spectral efficiency, and return it.

    Raises:
        ValueError: the cap is not positive.
    """
    if not cap > 0:
        raise ValueError(f"cap must be > 0 bits/s/Hz, or None for no limit, got {cap}")
    return cap


def check_power_rule(rule: str) -> None:
    """Raise if a power rule is unknown.

    Raises:
        ValueError: the rule is unknown.
    """
    if rule not in _POWER_RULES:
        raise ValueError(f"power must be one of {', '.join(_POWER_RULES)}, got {rule!r}")


def scaled_exp1(x: FloatArray) -> FloatArray:
    """Compute e^x E1(x) for x >= 0, exact to about 1e-15 relative."""
    from scipy import special

    # e^x overflows and E1 underflows for large x, so each branch gets only arguments within its range
    near = x < _FRACTION_FROM
    if near.all():
        return np.exp(x) * special.exp1(x)
    large = np.maximum(x, _FRACTION_FROM)
    far = 1.0 / (large + 1.0 - exp1_tail(large))
    if not near.any():
        return far
    small = np.minimum(x, _FRACTION_FROM)
    return np.where(near, np.exp(small) * special.exp1(small), far)


def exp1_tail(x: Values) -> Values:
    """Compute r in e^x E1(x) = 1 / (x + 1 - r) for x >= 30: 1/(x+3 - 4/(x+5 - 9/(x+7 - ...))).

    Source: the even part of Abramowitz and Stegun, 5.1.22.
    """
    value = x + (2 * _FRACTION_DEPTH + 1)
    for k in range(_FRACTION_DEPTH, 1, -1):
        value = x + (2 * k - 1) - k * k / value
    return 1.0 / value


def _ergodic_rate_of(snr: float, cap: float | None) -> float:
    """Compute the ergodic rate at a single SNR, as `ergodic_rate` does for arrays."""
    if not snr >= 0:
        raise ValueError(f"snr must be >= 0, got {snr}")
    # an SNR whose inverse overflows carries no bits
    x = 1.0 / snr if snr > 0 else math.inf
    nats = _scaled_exp1_of(x)
    if cap is not None:
        try:
            top = math.expm1(check_cap(cap) * _LN2)
        except OverflowError:  # a cap that is never reached
            return nats / _LN2
        nats = cap * _LN2 if x == 0 else nats - math.exp(-x * top) * _scaled_exp1_of(x * (1.0 + top))
    return nats / _LN2


def _scaled_exp1_of(x: float) -> float:
    if x < _FRACTION_FROM:
        from scipy import special

        return math.exp(x) * float(special.exp1(x))
    return 1.0 / (x + 1.0 - exp1_tail(x))
