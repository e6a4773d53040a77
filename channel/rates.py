"""How the rate of a fading link averages out over slots."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from channel.carrier import Carrier
from channel.share import ergodic_rate, spectral_efficiency
from channel.tdd import Frame, Weights
from channel.units import FloatArray, db_to_linear

# Table of log s2 over the SNR in dB and log(-2 ln|rho|), computed on every 10th point, splined between
_DB_FROM, _DB_STEP, _DB_POINTS = -60.0, 0.1, 2001
_DECAY_FROM, _DECAY_STEP, _DECAY_POINTS = math.log(1e-8), 0.025, 891
_COARSE = 10
# terms of the Laguerre series, one by one
_TERMS = 256

# Beyond this g, g e^-g L_m(g) is below rounding for every term.
_LARGEST_G = 80.0
# With a cap, later terms are taken in bins, up to here and while m g stays within what the nodes resolve.
_LAST_TERM = 1e10
_BINS = 120
_LARGEST_MG = 60.0
_BIN_NODES = 40


def rate_moments(
    snr: npt.ArrayLike,
    correlation: npt.ArrayLike,
    carrier: Carrier,
) -> tuple[FloatArray, FloatArray]:
    """Compute the mean and the long-run variance per slot of the rate of a fading link.

    The rate is w_n f(|h_n|^2) with f(g) = min(log2(1 + snr g), cap).

    The long-run variance s2 is the limit of Var(f_1 + ... + f_n) / n. For a complex Gauss-Markov h, the
    Laguerre polynomials L_m of g = |h|^2 decorrelate: E[L_m(g_0) L_l(g_k)] = rho^(2mk) for m = l, else 0.
    With a_m = E[f L_m], g ~ Exp(1), and the weights w of a TDD frame of p slots,

        mu = a_0 mean(w),   s2 = sum_{m>=1} a_m^2 sum_k rho^(2m|k|) R(k),   R(k) = mean_n w_n w_(n+k).

    R has period p, so that with q = rho^(2m) the sum over k is R(0) + 2 sum_{j=1..p} q^j R(j) / (1 - q^p);
    without weights (1 + q) / (1 - q). Summed apart, its first part gives R(0) Var f.

    As m e^-g L_m = (g e^-g L^(1)_(m-1))', one integration by parts gives, with f running from 0 to the cap,

        a_m = -(1/m) integral g e^-g L^(1)_(m-1)(g) df,   g = (2^f - 1) / snr,

    and m - 1 more, without a cap, a_m = -(1 / (m ln 2)) E[(g / (g + 1/snr))^m].

    mu is exact. log s2 is tabulated over snr, -60 to 140 dB, and rho, interpolated linearly, and continued
    beyond the table. It sums 256 terms one by one; without a cap |a_m| < 1 / (m ln 2) and the rest is below
    1e-5. With a cap, deep fades are rare and short at high SNR and terms matter until m g ~ 1 at the g where
    the cap sets in: they are summed in bins with L^(1)_(m-1)(g) ~ sqrt(m/g) e^(g/2) J_1(2 sqrt(m g)) (Hilb).
    s2 is within 3e-4 of the full series for |rho| <= 1 - 1e-8.

    Args:
        snr: [devices] linear, > 0, or one for all.
        correlation: [devices] rho between slots, |rho| < 1, or one for all.
        carrier: its weights w and its cap; they alone matter.

    Returns:
        mu in bits/s/Hz and s2 in (bits/s/Hz)^2, each [devices] or a number.

    Raises:
        ValueError: snr is not positive, or |rho| >= 1 (a static rate never averages out).

    Left out: what the sum owes to the phase of the frame at its two ends, at most one period's bits.
    """
    if isinstance(snr, float) and isinstance(correlation, float):
        moments = rate_moments_of(snr, correlation, carrier)
        return np.float64(moments[0]), np.float64(moments[1])
    gamma, rho = np.broadcast_arrays(np.asarray(snr, dtype=float), np.asarray(correlation, dtype=float))
    if not (np.all(gamma > 0) and np.all(gamma < math.inf)):
        raise ValueError(f"snr must be positive and finite, got {gamma}")
    if not np.all(np.abs(rho) < 1):
        raise ValueError(_static(rho))
    table = _variance_table(carrier.frame.weights, carrier.cap)
    with np.errstate(divide="ignore"):
        decay = np.log(-2.0 * np.log(np.abs(rho)))
    x = (10.0 * np.log10(gamma) - _DB_FROM) / _DB_STEP
    y = np.minimum((decay - _DECAY_FROM) / _DECAY_STEP, _DECAY_POINTS - 1)
    i = np.clip(x.astype(np.int64), 0, _DB_POINTS - 2)
    j = np.clip(y.astype(np.int64), 0, _DECAY_POINTS - 2)
    x, y = x - i, y - j
    near = table[i, j] + y * (table[i, j + 1] - table[i, j])
    far = table[i + 1, j] + y * (table[i + 1, j + 1] - table[i + 1, j])
    return carrier.mean_efficiency(gamma) * carrier.frame.mean, np.exp(near + x * (far - near))


def rate_moments_of(snr: float, correlation: float, carrier: Carrier) -> tuple[float, float]:
    """Compute `rate_moments` of one link, without arrays: in some microseconds.

    Raises:
        ValueError: as in `rate_moments`.
    """
    if not 0 < snr < math.inf:
        raise ValueError(f"snr must be positive and finite, got {snr}")
    if not -1 < correlation < 1:
        raise ValueError(_static(correlation))
    table = _variance_table(carrier.frame.weights, carrier.cap)
    x = (10.0 * math.log10(snr) - _DB_FROM) / _DB_STEP
    y = _DECAY_POINTS - 1.0
    if correlation:
        decay = math.log(-2.0 * math.log(abs(correlation)))
        y = min((decay - _DECAY_FROM) / _DECAY_STEP, y)
    i = min(max(int(x), 0), _DB_POINTS - 2)
    j = min(max(int(y), 0), _DECAY_POINTS - 2)
    x, y = x - i, y - j
    a, b, c, d = table.item(i, j), table.item(i, j + 1), table.item(i + 1, j), table.item(i + 1, j + 1)
    near = a + y * (b - a)
    far = c + y * (d - c)
    return float(carrier.mean_efficiency(snr)) * carrier.frame.mean, math.exp(near + x * (far - near))


def _static(correlation: object) -> str:
    return (
        f"correlation must lie within -1 and 1, both excluded, got {correlation}: a static rate has no "
        "long-run variance, use slots_exact"
    )


@lru_cache(maxsize=16)
def _variance_table(weights: Weights, cap: float | None) -> FloatArray:
    """[SNR, decay] log s2.

    log s2 is analytic in both coordinates: bicubic splines over steps of 1 dB and 1/4 leave 1e-5, linear
    interpolation over their tenths 1e-4.
    """
    from scipy import interpolate  # a third of a second, which not every command should wait for

    db = _grid(_DB_FROM, _DB_STEP, _DB_POINTS)
    decay = _grid(_DECAY_FROM, _DECAY_STEP, _DECAY_POINTS)
    coarse_db, coarse_decay = db[::_COARSE], decay[::_COARSE]
    variance, orders, squares = _series(cap)

    frame = Frame(weights)
    correlation = frame.autocorrelation()
    # m * (-2 ln|rho|), so that q = e^-exponent
    exponent = orders[:, None] * np.exp(coarse_decay)
    pull = sum(np.exp(-j * exponent) * correlation[j] for j in range(1, frame.period + 1))
    pull = 2.0 * pull / -np.expm1(-frame.period * exponent)
    # einsum and not @: the sums must not depend on how many threads a BLAS library takes
    s2 = correlation[0] * variance[:, None] + np.einsum("sm,md->sd", squares, pull)
    return interpolate.RectBivariateSpline(coarse_db, coarse_decay, np.log(s2))(db, decay)


def _grid(first: float, step: float, points: int) -> FloatArray:
    return np.asarray(first + step * np.arange(points), dtype=float)


@lru_cache(maxsize=8)
def _series(cap: float | None) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Var f [SNR], orders m [terms] and a_m^2 [SNR, terms] on the coarse grid; bins hold their sum."""
    snr = db_to_linear(_grid(_DB_FROM, _DB_STEP, _DB_POINTS)[::_COARSE])
    orders = np.arange(1.0, _TERMS + 1)
    if cap is None:
        variance, squares = _terms(snr)
        return variance, orders, squares
    variance, squares = _capped_terms(snr, cap)
    late_orders, late_squares = _late_terms(snr, cap)
    return variance, np.append(orders, late_orders), np.hstack([squares, late_squares])


def _terms(snr: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Var f [snr] and a_m^2 [snr, terms] without a cap.

    Expectations over g ~ Exp(1) by the trapezoidal rule in u = ln g. The integrand is analytic and
    bounded for |Im u| < pi/2, so that a step of 1/8 errs by exp(-2 pi (pi/2) 8): only rounding remains.
    """
    u = np.arange(-40.0, 4.5, 1.0 / 8.0)
    g = np.exp(u)
    density = g * np.exp(-g) / 8.0
    snr_g = snr[:, None] * g
    deviation = spectral_efficiency(snr_g)
    deviation -= np.einsum("sg,g->s", deviation, density)[:, None]
    variance = np.einsum("sg,g->s", np.square(deviation), density)

    ratio = snr_g / (1.0 + snr_g)
    power = np.ones_like(ratio)
    squares = np.empty((len(snr), _TERMS))
    for m in range(1, _TERMS + 1):
        power *= ratio
        squares[:, m - 1] = (np.einsum("sg,g->s", power, density) / (m * math.log(2.0))) ** 2
    return variance, squares


def _capped_terms(snr: FloatArray, cap: float) -> tuple[FloatArray, FloatArray]:
    """Var f [snr] and a_m^2 [snr, terms] with a cap, by Gauss-Legendre over u = ln(1 + snr g) = f ln 2."""
    top = np.minimum(cap * math.log(2.0), np.log1p(_LARGEST_G * snr))
    # g e^-g L^(1)_m runs through up to 45 periods, most of them near the top
    nodes, node_weights = np.polynomial.legendre.leggauss(256 + 64 * math.ceil(top.max()))
    u = top[:, None] * (nodes + 1.0) / 2.0
    du = top[:, None] * node_weights / 2.0
    g = np.expm1(u) / snr[:, None]
    damped = np.exp(-g / 2.0)

    mean = ergodic_rate(snr, cap)
    # dg = e^u du / snr; what lies beyond the top is at the cap
    density = np.exp(u - g) / snr[:, None] * du
    beyond = np.exp(-np.expm1(top) / snr)
    efficiency = u / math.log(2.0)
    variance = np.einsum("su,su->s", np.square(efficiency - mean[:, None]), density)
    variance += beyond * (top / math.log(2.0) - mean) ** 2

    squares = np.empty((len(snr), _TERMS))
    weight = g * damped * du
    # e^(-g/2) L^(1)_m, by its three-term recurrence
    before, laguerre = np.zeros_like(g), damped
    for m in range(1, _TERMS + 1):
        squares[:, m - 1] = (np.einsum("su,su->s", weight, laguerre) / (m * math.log(2.0))) ** 2
        before, laguerre = laguerre, ((2 * m - g) * laguerre - m * before) / m
    return variance, squares


def _late_terms(snr: FloatArray, cap: float) -> tuple[FloatArray, FloatArray]:
    """Orders [bins] beyond the first terms, and the sum of a_m^2 [snr, bins] over each bin, with a cap."""
    from scipy import special

    edges = np.geomspace(_TERMS + 0.5, _LAST_TERM, _BINS + 1)
    orders = np.sqrt(edges[1:] * edges[:-1])
    top = np.minimum(cap * math.log(2.0), np.log1p(_LARGEST_G * snr))
    nodes, node_weights = np.polynomial.legendre.leggauss(_BIN_NODES)
    u = top[:, None] * (nodes + 1.0) / 2.0
    g = np.expm1(u) / snr[:, None]
    weight = np.exp(-g / 2.0) * top[:, None] * node_weights / 2.0
    root = np.sqrt(orders[:, None] * g[:, None, :])
    coefficients = np.einsum("smu,su->sm", root * special.j1(2.0 * root), weight) / (orders * math.log(2.0))
    coefficients[orders * (np.expm1(top) / snr)[:, None] > _LARGEST_MG] = 0.0
    return orders, np.square(coefficients) * np.diff(edges)
