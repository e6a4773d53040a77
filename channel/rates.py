"""Mean and long-run variance of a fading link's rate."""

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgefl.channel.carrier import Carrier
from edgefl.channel.modulation import Steps, diversity_rate
from edgefl.channel.share import ergodic_rate, spectral_efficiency
from edgefl.channel.tdd import Frame, Weights
from edgefl.channel.units import FloatArray, db_to_linear

# Table of log s2 over the SNR in dB and log(-2 ln|rho|), computed at every 10th point, with splines in between; for
# stepwise rates, computed at every second SNR, since the mean of many parts of a band crosses a step within 1 dB
_DB_FROM, _DB_STEP, _DB_POINTS = -60.0, 0.1, 2001
_DECAY_FROM, _DECAY_STEP, _DECAY_POINTS = math.log(1e-8), 0.025, 891
_COARSE, _COARSE_STEPS = 10, 2
_TERMS = 256  # number of terms of the Laguerre series that are summed one by one

_LARGEST_G = 80.0  # beyond this g, g e^-g L_m(g) is below rounding for every term
# With a cap, later terms are summed in bins, up to this order and as long as the nodes resolve m g.
_LAST_TERM = 1e10
_BINS = 120
_LARGEST_MG = 60.0
_BIN_NODES = 40
_SMALLEST = 1e-290  # lower bound of s2, since weak links with stepwise rates have almost no variance

# A rate f(g): its cap, its steps, and the number of independent parts of the band over which g is the mean
Law = tuple[float | None, Steps | None, int]


def rate_moments(
    snr: npt.ArrayLike,
    correlation: npt.ArrayLike,
    carrier: Carrier,
) -> tuple[FloatArray, FloatArray]:
    """Compute the mean and the long-run variance per slot of a fading link's rate.

    The rate is w_n f(|h_n|^2) with f(g) = min(log2(1 + snr g), cap), or the steps of a table.

    The long-run variance s2 is the limit of Var(f_1 + ... + f_n) / n. For a complex Gauss-Markov h, the
    Laguerre polynomials L_m of g = |h|^2 decorrelate: E[L_m(g_0) L_l(g_k)] = rho^(2mk) for m = l, else 0.
    With a_m = E[f L_m], g ~ Exp(1), and the weights w of a TDD frame of p slots,

        mu = a_0 mean(w),   s2 = sum_{m>=1} a_m^2 sum_k rho^(2m|k|) R(k),   R(k) = mean_n w_n w_(n+k).

    R has period p, so that with q = rho^(2m) the sum over k is R(0) + 2 sum_{j=1..p} q^j R(j) / (1 - q^p);
    without weights it is (1 + q) / (1 - q). The terms with k = 0 sum to R(0) Var f.

    Since m e^-g L_m = (g e^-g L^(1)_(m-1))', one integration by parts gives, with f running from 0 to the cap,

        a_m = -(1/m) integral g e^-g L^(1)_(m-1)(g) df,   g = (2^f - 1) / snr,

    and, without a cap, after m - 1 more integrations by parts, a_m = -(1 / (m ln 2)) E[(g / (g + 1/snr))^m].

    If g is the mean of L such parts of the band, x = L g ~ Gamma(L), and the polynomials are Laguerre's L^(L-1)_m,
    which also decorrelate by rho^(2m) (Kibble, Sankhya 1941). Scaled to unit variance, these polynomials give

        a_m = -sqrt(m! / ((m+L-1)! (L-1)!)) (1/m) integral x^L e^-x L^(L)_(m-1)(x) df.

    For a stepwise rate, the integral over df is a sum over the steps.

    mu is exact. log s2 is tabulated over snr, -60 to 140 dB, and rho, interpolated linearly, and extrapolated beyond
    the table. The table sums 256 terms one by one; without a cap, |a_m| < 1 / (m ln 2), and the rest is below 1e-5.
    With a cap, deep fades are rare and short at high SNR, and terms matter up to m g ~ 1 at the g where the cap is
    reached; they are summed in bins with L^(1)_(m-1)(g) ~ sqrt(m/g) e^(g/2) J_1(2 sqrt(m g)) (Hilb). A stepwise rate
    has terms of higher orders, whose squares are averaged over an oscillation, J^2(z) ~ 1 / (pi z). For |rho| <= 1 -
    1e-8, s2 is within 3e-4 of the full series, or within 5e-3 with steps or several parts.

    Args:
        snr: [devices] linear mean SNR, > 0, or one value for all.
        correlation: [devices] rho between slots, |rho| < 1, or one value for all.
        carrier: carrier of the link; only its weights w, its cap or steps, and its taps L matter.

    Returns:
        Mean mu in bits/s/Hz and variance s2 in (bits/s/Hz)^2, each [devices] or a number.

    Raises:
        ValueError: snr is not positive, or |rho| >= 1 (a static rate never averages out).

    Left out: the phase of the frame at both ends of the sum, which changes the sum by at most one period's bits.
    """
    if isinstance(snr, float) and isinstance(correlation, float):
        moments = rate_moments_of(snr, correlation, carrier)
        return np.float64(moments[0]), np.float64(moments[1])
    gamma, rho = np.broadcast_arrays(np.asarray(snr, dtype=float), np.asarray(correlation, dtype=float))
    if not (np.all(gamma > 0) and np.all(gamma < math.inf)):
        raise ValueError(f"snr must be positive and finite, got {gamma}")
    if not np.all(np.abs(rho) < 1):
        raise ValueError(_static(rho))
    table = _variance_table(carrier.frame.weights, (carrier.cap, carrier.steps, carrier.taps))
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
    """Compute mean and variance of one link's rate like `rate_moments`, but without arrays, in a few microseconds.

    Raises:
        ValueError: snr is not positive, or |rho| >= 1.
    """
    if not 0 < snr < math.inf:
        raise ValueError(f"snr must be positive and finite, got {snr}")
    if not -1 < correlation < 1:
        raise ValueError(_static(correlation))
    table = _variance_table(carrier.frame.weights, (carrier.cap, carrier.steps, carrier.taps))
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
        f"correlation must be strictly between -1 and 1, got {correlation}: a static rate has no "
        "long-run variance; use slots_exact"
    )


@lru_cache(maxsize=16)
def _variance_table(weights: Weights, law: Law) -> FloatArray:
    """Return the table [SNR, decay] of log s2, where s2 is the long-run variance of the rate per slot.

    log s2 is analytic in both coordinates: bicubic splines over steps of 1 dB and 1/4 have errors of 1e-5, and linear
    interpolation over tenths of these steps has errors of 1e-4.
    """
    from scipy import interpolate  # this import takes a third of a second, and not every command needs it

    db = _grid(_DB_FROM, _DB_STEP, _DB_POINTS)
    decay = _grid(_DECAY_FROM, _DECAY_STEP, _DECAY_POINTS)
    coarse_db, coarse_decay = db[:: _db_stride(law)], decay[::_COARSE]
    variance, orders, squares = _series(law)

    frame = Frame(weights)
    correlation = frame.autocorrelation()
    # m * (-2 ln|rho|), so that q = e^-exponent
    exponent = orders[:, None] * np.exp(coarse_decay)
    pull = sum(np.exp(-j * exponent) * correlation[j] for j in range(1, frame.period + 1))
    pull = 2.0 * pull / -np.expm1(-frame.period * exponent)
    # with einsum, unlike @, the sums do not depend on the number of threads of a BLAS library
    s2 = correlation[0] * variance[:, None] + np.einsum("sm,md->sd", squares, pull)
    return interpolate.RectBivariateSpline(coarse_db, coarse_decay, np.log(np.maximum(s2, _SMALLEST)))(
        db, decay
    )


def _grid(first: float, step: float, points: int) -> FloatArray:
    return np.asarray(first + step * np.arange(points), dtype=float)


def _db_stride(law: Law) -> int:
    return _COARSE if law[1] is None else _COARSE_STEPS


@lru_cache(maxsize=8)
def _series(law: Law) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return Var f [SNR], orders m [terms] and a_m^2 [SNR, terms] on the coarse grid; a bin holds a sum of terms."""
    snr = db_to_linear(_grid(_DB_FROM, _DB_STEP, _DB_POINTS)[:: _db_stride(law)])
    orders = np.arange(1.0, _TERMS + 1)
    cap, steps, taps = law
    if steps is not None:
        variance, squares = _steps_variance(snr, steps, taps), _steps_terms(snr, steps, taps)
        late_orders, late_squares = _late_steps(snr, steps, taps)
    elif cap is None and taps == 1:
        variance, squares = _terms(snr)
        return variance, orders, squares
    else:
        variance, squares = _capped_terms(snr, cap, taps)
        late_orders, late_squares = _late_terms(snr, cap, taps)
    return variance, np.append(orders, late_orders), np.hstack([squares, late_squares])


def _terms(snr: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the rate's variance Var f [snr] and Laguerre terms a_m^2 [snr, terms] without a cap.

    Expectations over g ~ Exp(1) by the trapezoidal rule in u = ln g. The integrand is analytic and bounded for |Im u|
    < pi/2, so a step of 1/8 has an error of exp(-2 pi (pi/2) 8), less than rounding.
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


def _top(snr: FloatArray, cap: float | None, taps: int) -> FloatArray:
    """Return the largest ln(1 + snr g) [snr] that affects a rate; beyond it, the rate is capped or g is too rare."""
    top = np.log1p(_LARGEST_G * snr) if taps == 1 else np.log1p((_LARGEST_G / taps + 10.0) * snr)
    return top if cap is None else np.minimum(cap * math.log(2.0), top)


def _capped_terms(snr: FloatArray, cap: float | None, taps: int) -> tuple[FloatArray, FloatArray]:
    """Return Var f [snr] and a_m^2 [snr, terms] with a cap or taps, by Gauss-Legendre over u = ln(1 + snr g)."""
    top = _top(snr, cap, taps)
    # x e^-x L^(1)_m has up to 45 oscillations, most of them near the top
    nodes, node_weights = np.polynomial.legendre.leggauss(256 + 64 * math.ceil(top.max()))
    u = top[:, None] * (nodes + 1.0) / 2.0
    du = top[:, None] * node_weights / 2.0
    g = np.expm1(u) / snr[:, None]

    # dg = e^u du / snr; beyond the top the rate stays at the cap
    if taps == 1:
        mean = ergodic_rate(snr, cap)
        density = np.exp(u - g) / snr[:, None] * du
        beyond = np.exp(-np.expm1(top) / snr)
    else:
        from scipy import special

        mean = diversity_rate(snr, taps, cap)
        density = (
            np.exp(u + taps * np.log(taps * g) - taps * g - special.gammaln(taps)) / (g * snr[:, None]) * du
        )
        beyond = special.gammaincc(taps, taps * np.expm1(top) / snr)
    efficiency = u / math.log(2.0)
    variance = np.einsum("su,su->s", np.square(efficiency - mean[:, None]), density)
    variance += beyond * (top / math.log(2.0) - mean) ** 2
    return variance, _squares(g if taps == 1 else taps * g, du, taps)


def _squares(x: FloatArray, df: FloatArray, taps: int) -> FloatArray:
    """Return a_m^2, [snr, terms], of rates that increase by df / ln 2 [snr, points] at x = taps * g [snr, points]."""
    squares = np.empty((len(x), _TERMS))
    damped = np.exp(-x / 2.0)
    weight = _weight(x, damped, taps) * df
    # compute e^(-x/2) L^(taps)_m by its three-term recurrence
    before, laguerre = np.zeros_like(x), damped
    for m in range(1, _TERMS + 1):
        # sqrt(m! (L-1)! / (m+L-1)!), which scales the polynomial to a variance of 1
        scale = math.exp((math.lgamma(m + 1) + math.lgamma(taps) - math.lgamma(m + taps)) / 2.0)
        squares[:, m - 1] = (scale * np.einsum("su,su->s", weight, laguerre) / (m * math.log(2.0))) ** 2
        more = taps - 1
        before, laguerre = laguerre, ((2 * m + more - x) * laguerre - (m + more) * before) / m
    return squares


def _weight(x: FloatArray, damped: FloatArray, taps: int) -> FloatArray:
    """Return x^L e^(-x/2) / (L-1)!, computed by logarithms for L > 1; `damped` is e^(-x/2)."""
    if taps == 1:
        return x * damped
    return np.exp(taps * np.log(x) - x / 2.0 - math.lgamma(taps))


def _late(taps: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return orders and widths of bins beyond the first terms, Hilb's N, and the factor of a_m that depends on m.

    L^(L)_(m-1)(x) ~ (m+L-1)! / (m-1)! (N x)^(-L/2) e^(x/2) J_L(2 sqrt(N x)), N = m + (L-1)/2.
    """
    edges = np.geomspace(_TERMS + 0.5, _LAST_TERM, _BINS + 1)
    orders = np.sqrt(edges[1:] * edges[:-1])
    if taps == 1:
        return orders, np.diff(edges), orders, np.sqrt(orders) / (orders * math.log(2.0))
    bent = orders + (taps - 1) / 2.0
    logs = [
        0.5 * (math.lgamma(m + 1) + math.lgamma(m + taps) - math.lgamma(taps)) - math.lgamma(m)
        for m in orders.tolist()
    ]
    return (
        orders,
        np.diff(edges),
        bent,
        np.exp(np.array(logs) - taps / 2.0 * np.log(bent)) / (orders * math.log(2.0)),
    )


def _late_terms(snr: FloatArray, cap: float | None, taps: int) -> tuple[FloatArray, FloatArray]:
    """Return orders [bins] beyond the first terms, and a_m^2 [snr, bins] summed over each bin, with a cap or taps."""
    from scipy import special

    orders, widths, bent, factor = _late(taps)
    top = _top(snr, cap, taps)
    nodes, node_weights = np.polynomial.legendre.leggauss(_BIN_NODES)
    u = top[:, None] * (nodes + 1.0) / 2.0
    x = taps * np.expm1(u) / snr[:, None]
    weight = np.exp(taps / 2.0 * np.log(x) - x / 2.0) * top[:, None] * node_weights / 2.0
    waves = special.jv(taps, 2.0 * np.sqrt(bent[:, None] * x[:, None, :]))
    coefficients = np.einsum("smu,su->sm", waves, weight) * factor
    coefficients[bent * (taps * np.expm1(top) / snr)[:, None] > _LARGEST_MG] = 0.0
    return orders, np.square(coefficients) * widths


def _steps_variance(snr: FloatArray, steps: Steps, taps: int) -> FloatArray:
    """Return Var f [snr] of a stepwise rate, computed from deviations from the top rate to avoid cancellation."""
    from scipy import special

    x = taps * steps.needs / snr[:, None]
    below, above = special.gammainc(taps, x), special.gammaincc(taps, x)
    short = np.einsum("ns,s->n", below, np.diff(steps.rates))
    chance = np.empty((len(snr), len(steps.rates)))
    chance[:, 0], chance[:, -1] = below[:, 0], above[:, -1]
    chance[:, 1:-1] = np.where(x[:, :-1] < taps, np.diff(below), -np.diff(above))
    deviation = steps.rates - steps.rates[-1] + short[:, None]
    return np.asarray(np.einsum("ns,ns->n", np.square(deviation), chance))


def _steps_terms(snr: FloatArray, steps: Steps, taps: int) -> FloatArray:
    """Return the Laguerre terms a_m^2 [snr, terms] of a stepwise rate."""
    x = taps * steps.needs / snr[:, None]
    return _squares(x, np.broadcast_to(np.diff(steps.rates) * math.log(2.0), x.shape), taps)


def _late_steps(snr: FloatArray, steps: Steps, taps: int) -> tuple[FloatArray, FloatArray]:
    """Return a stepwise rate's orders [bins] beyond the first terms, and a_m^2 [snr, bins] summed over each bin."""
    from scipy import special

    orders, widths, bent, factor = _late(taps)
    x = (taps * steps.needs / snr[:, None])[:, None, :]
    height = np.diff(steps.rates) * math.log(2.0) * np.exp(taps / 2.0 * np.log(x) - x / 2.0)
    turns = np.sqrt(bent[:, None] * x)
    slow = turns**2 <= _LARGEST_MG
    waves = np.zeros_like(turns)
    waves[slow] = special.jv(taps, 2.0 * turns[slow])
    together = np.sum(height * waves, axis=2)
    each = np.sum(np.where(slow, 0.0, height**2 / (2.0 * math.pi * turns)), axis=2)
    return orders, (together**2 + each) * factor**2 * widths
