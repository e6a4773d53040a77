"""How the rate of a fading link averages out over slots."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from channel.ofdma import ergodic_rate, spectral_efficiency
from channel.units import FloatArray

# The table behind `rate_moments`: SNR in dB, and terms of the Laguerre series
_TABLE_DB = np.arange(-60.0, 140.25, 0.25)
_TABLE_TERMS = 256


def rate_moments(snr: npt.ArrayLike, correlation: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Mean and long-run variance of the rate f(|h|^2) = log2(1 + snr |h|^2) per slot.

    The long-run variance s2 is the limit of Var(f_1 + ... + f_n) / n. For a complex Gauss-Markov h, the
    Laguerre polynomials L_m of g = |h|^2 decorrelate: E[L_m(g_0) L_l(g_k)] = rho^(2mk) for m = l, else 0.
    With a_m = E[f L_m], g ~ Exp(1),

        mu = a_0,   s2 = sum_{m>=1} a_m^2 (1 + rho^(2m)) / (1 - rho^(2m))
                       = Var f + 2 sum_{m>=1} a_m^2 rho^(2m) / (1 - rho^(2m)).

    As e^-g L_m = (g^m e^-g)^(m) / m!, integrating by parts m times leaves (x = 1/snr)

        a_m = -(1 / (m ln 2)) E[(g / (g + x))^m],   m >= 1.

    mu is exact. Var f and 256 of the a_m^2 are tabulated over snr, -60 to 140 dB in steps of 0.25 dB;
    log s2 is interpolated linearly, and continued beyond the table. As |a_m| < 1 / (m ln 2), the terms
    left out are less than 1e-5 of s2; with the interpolation s2 is within 2e-4 of the full series.

    Args:
        snr: [devices] linear, > 0, or one for all.
        correlation: [devices] rho between slots, |rho| < 1, or one for all.

    Returns:
        mu in bits/s/Hz and s2 in (bits/s/Hz)^2, each [devices] or a number.

    Raises:
        ValueError: snr is not positive, or |rho| >= 1 (a static rate never averages out).
    """
    gamma, rho = np.broadcast_arrays(np.asarray(snr, dtype=float), np.asarray(correlation, dtype=float))
    if not (np.all(gamma > 0) and np.all(gamma < math.inf)):
        raise ValueError(f"snr must be positive and finite, got {gamma}")
    if not np.all(np.abs(rho) < 1):
        raise ValueError(
            f"correlation must lie within -1 and 1, both excluded, got {rho}: a static rate has no "
            "long-run variance, use slots_exact"
        )
    variance, squares, orders = _rate_table()
    position = (10.0 * np.log10(gamma) - _TABLE_DB[0]) / (_TABLE_DB[1] - _TABLE_DB[0])
    lower = np.clip(position.astype(int), 0, len(_TABLE_DB) - 2)
    with np.errstate(divide="ignore", over="ignore"):
        # rho^(2m) / (1 - rho^(2m)); 0 for rho = 0
        weight = 1.0 / np.expm1(-2.0 * np.log(np.abs(rho))[..., None] * orders)
    log_lower = np.log(variance[lower] + 2.0 * np.sum(squares[lower] * weight, axis=-1))
    log_upper = np.log(variance[lower + 1] + 2.0 * np.sum(squares[lower + 1] * weight, axis=-1))
    return ergodic_rate(gamma), np.exp(log_lower + (position - lower) * (log_upper - log_lower))


@lru_cache(maxsize=1)
def _rate_table() -> tuple[FloatArray, FloatArray, FloatArray]:
    """Var f [grid], a_m^2 [grid, terms] and the orders m [terms] over the SNR grid.

    Expectations over g ~ Exp(1) by the trapezoidal rule in u = ln g. The integrand is analytic and
    bounded for |Im u| < pi/2, so that a step of 1/8 errs by exp(-2 pi (pi/2) 8): only rounding remains.
    """
    u = np.arange(-40.0, 4.5, 1.0 / 8.0)
    g = np.exp(u)
    density = g * np.exp(-g) / 8.0
    snr_g = 10.0 ** (_TABLE_DB[:, None] / 10.0) * g
    deviation = spectral_efficiency(snr_g)
    # einsum and not @: the sums must not depend on how many threads a BLAS library takes
    deviation -= np.einsum("sg,g->s", deviation, density)[:, None]
    variance = np.einsum("sg,g->s", np.square(deviation), density)

    orders = np.arange(1, _TABLE_TERMS + 1)
    ratio = snr_g / (1.0 + snr_g)
    power = np.ones_like(ratio)
    squares = np.empty((len(_TABLE_DB), _TABLE_TERMS))
    for m in orders:
        power *= ratio
        squares[:, m - 1] = (np.einsum("sg,g->s", power, density) / (m * math.log(2.0))) ** 2
    return variance, squares, orders.astype(float)
