import math

import numpy as np
import pytest
from scipy import integrate, special

from edgefl.channel.carrier import Carrier
from edgefl.channel.modulation import Steps
from edgefl.channel.rates import (
    _capped_terms,
    _late_steps,
    _late_terms,
    _steps_terms,
    _steps_variance,
    rate_moments,
)

FAST = 0.9667
PLAIN = Carrier(1e6, 0.5e-3)


@pytest.mark.parametrize("snr", [0.05, 1.3, 40.0])
@pytest.mark.parametrize("rho", [0.0, 0.3, -0.6])
def test_rate_moments_are_the_laguerre_series(snr: float, rho: float) -> None:
    # a_m = E[f L_m] by numerical integration, without integration by parts or a table. From m = 18, rho^(2m) < 1e-8.
    def coefficient(m: int) -> float:
        value, _ = integrate.quad(
            lambda g: math.log2(1 + snr * g) * special.eval_laguerre(m, g) * math.exp(-g), 0, 80, limit=200
        )
        return value

    square, _ = integrate.quad(lambda g: math.log2(1 + snr * g) ** 2 * math.exp(-g), 0, 80)
    m = np.arange(1, 18)
    squares = np.array([coefficient(k) for k in m]) ** 2
    ratio = rho ** (2 * m)
    series = square - coefficient(0) ** 2 + 2 * np.sum(squares * ratio / (1 - ratio))
    mean, long_run_variance = rate_moments(snr, rho, PLAIN)
    assert mean == pytest.approx(coefficient(0), rel=1e-9)
    # the tolerance is that of the table's interpolation
    assert long_run_variance == pytest.approx(series, rel=2e-4)


@pytest.mark.parametrize("rho", [0.0, FAST, 0.99966])
def test_rate_moments_limits(rho: float) -> None:
    ln2 = math.log(2)
    # log2(1 + snr g) ~ snr g / ln 2: only L_1 = 1 - g contributes, a_1^2 = (snr / ln 2)^2
    snr = 1e-8
    first = (snr / ln2) ** 2 * (1 + rho**2) / (1 - rho**2)
    assert rate_moments(snr, rho, PLAIN)[1] == pytest.approx(first, rel=1e-4)
    # log2(1 + snr g) ~ log2 snr + log2 g has a_m = -1 / (m ln 2), and Var log2 g = pi^2 / (6 ln^2 2)
    m = np.arange(1.0, 200_000.0)
    ratio = rho ** (2 * m)
    high = (math.pi**2 / 6 + 2 * np.sum(ratio / (m**2 * (1 - ratio)))) / ln2**2
    assert rate_moments(1e13, rho, PLAIN)[1] == pytest.approx(high, rel=1e-4)


def coefficient(m: int, snr: float, cap: float) -> float:
    """Return a_m = E[f L_m] by its definition."""
    edge = (2**cap - 1) / snr
    value, _ = integrate.quad(
        lambda g: min(math.log2(1 + snr * g), cap) * special.eval_laguerre(m, g) * math.exp(-g),
        0,
        80,
        limit=400,
        points=[min(edge, 79.0)],
    )
    return value


@pytest.mark.parametrize(("snr", "cap"), [(0.2, 7.4), (10.0, 3.0), (400.0, 7.4)])
@pytest.mark.parametrize("weights", [None, (1.0, 1.0, 1.0, 5 / 7, 0.0), (0.0, 0.0, 0.0, 1 / 7, 1.0)])
def test_rate_moments_with_cap_and_tdd(snr: float, cap: float, weights: tuple[float, ...] | None) -> None:
    # rho^(2m) < 1e-9 from m = 12 on; lags beyond 60 add less than 1e-15
    rho, orders, lags = 0.42, range(12), range(-60, 61)
    a = [coefficient(m, snr, cap) for m in orders]
    edge = (2**cap - 1) / snr
    square, _ = integrate.quad(
        lambda g: min(math.log2(1 + snr * g), cap) ** 2 * math.exp(-g),
        0,
        80,
        limit=400,
        points=[min(edge, 79)],
    )
    w = np.array(weights or (1.0,))

    def covariance(k: int) -> float:
        # covariance of the rates of slots k apart
        if k == 0:
            return square - a[0] ** 2
        return sum(a[m] ** 2 * rho ** (2 * m * abs(k)) for m in orders[1:])

    expected = sum(covariance(k) * float(np.mean(w * np.roll(w, -k))) for k in lags)
    mean, long_run_variance = rate_moments(snr, rho, Carrier(1e6, 0.5e-3, weights, cap))
    assert mean == pytest.approx(a[0] * w.mean(), rel=1e-8)
    # the tolerance is that of the table's interpolation
    assert long_run_variance == pytest.approx(expected, rel=3e-4)


def test_rare_deep_fades_below_the_cap() -> None:
    # at 40 dB with a cap at 22 dB, fades matter up to orders m of about 1 / g, where g = 0.017 reaches the cap
    snr, cap, terms = 1e4, 7.4, 2500
    top = cap * math.log(2)
    nodes, weights = np.polynomial.legendre.leggauss(100)
    u, du = top * (nodes + 1) / 2, top * weights / 2
    g = np.expm1(u) / snr
    orders = np.arange(1, terms + 1)
    # a_m = -(1/m) integral of g e^-g L^(1)_(m-1) df with f = u / ln 2; the polynomials are scipy's
    polynomials = special.eval_genlaguerre(orders[:, None] - 1, 1.0, g)
    a = -(polynomials @ (g * np.exp(-g) * du)) / (orders * math.log(2))
    mean = float(integrate.quad(lambda t: math.exp(-(2**t - 1) / snr), 0, cap)[0])
    shortfall, _ = integrate.quad(lambda t: 2 * (cap - t) * -math.expm1(-(2**t - 1) / snr), 0, cap)
    variance = shortfall - (cap - mean) ** 2
    for rho in (FAST, 0.99966):
        ratio = rho ** (2.0 * orders)
        late = 2 * a**2 * ratio / (1 - ratio)
        expected = variance + np.sum(late)
        assert rate_moments(snr, rho, Carrier(1e6, 0.5e-3, cap=cap))[1] == pytest.approx(expected, rel=3e-4)
        # under slow fading, the 256 orders that are summed one by one are not enough
        assert (np.sum(late[256:]) > 3e-3 * expected) == (rho > 0.99)


def test_a_cap_that_is_never_reached_changes_nothing() -> None:
    snr = np.array([1e-3, 1.0, 100.0])
    for rho in (0.0, FAST):
        free, capped = rate_moments(snr, rho, PLAIN), rate_moments(snr, rho, Carrier(1e6, 0.5e-3, cap=16.0))
        np.testing.assert_allclose(capped[0], free[0], rtol=1e-12)
        np.testing.assert_allclose(capped[1], free[1], rtol=1e-4)
    # a frame that always serves equals no frame
    np.testing.assert_array_equal(
        rate_moments(snr, FAST, Carrier(1e6, 0.5e-3, (1.0, 1.0))), rate_moments(snr, FAST, PLAIN)
    )


@pytest.mark.parametrize("framed", [PLAIN, Carrier(1e6, 0.5e-3, (1.0, 0.5, 0.0), cap=5.0)])
def test_one_link_is_one_of_many(framed: Carrier) -> None:
    snr, rho = np.array([1e-8, 0.1, 30.0, 1e15]), np.array([0.0, -0.3, FAST, 1 - 1e-12])
    many = np.array(rate_moments(snr, rho, framed))
    one = np.array([rate_moments(float(g), float(r), framed) for g, r in zip(snr, rho, strict=True)])
    np.testing.assert_allclose(many.T, one, rtol=1e-12)
    assert rate_moments(snr, FAST, framed)[1].shape == (4,)


@pytest.mark.parametrize("taps", [1, 2, 6])
@pytest.mark.parametrize(
    ("steps", "cap"), [(Steps(layers=2), None), (Steps(smallest_part=0.25), None), (None, 7.4)]
)
def test_rate_moments_of_steps_and_of_several_parts_of_a_band(
    taps: int, steps: Steps | None, cap: float | None
) -> None:
    """Moments match integrals of a_m = E[f P_m], where P_m are normalised Laguerre polynomials of Gamma(L)."""
    rho, orders = 0.42, np.arange(13)  # rho^(2m) < 1e-9 from m = 12 on
    edges = np.concatenate([[0.0], np.geomspace(1e-9, 120.0, 4000)])
    carrier = Carrier(1e6, 0.5e-3, cap=cap, steps=steps, taps=taps)
    for snr in (0.5, 20.0, 300.0):
        jumps = [] if steps is None else (taps * steps.needs / snr).tolist()
        cuts = np.unique(np.concatenate([edges, jumps, [taps * (2 ** (cap or 1) - 1) / snr]]))
        nodes, weights = np.polynomial.legendre.leggauss(6)
        x = (cuts[:-1, None] + np.diff(cuts)[:, None] * (nodes + 1) / 2).ravel()
        dx = (np.diff(cuts)[:, None] * weights / 2).ravel()
        density = np.exp((taps - 1) * np.log(x) - x - special.gammaln(taps)) * dx
        rate = carrier.efficiency(snr * x / taps)
        polynomials = special.eval_genlaguerre(orders[:, None], taps - 1, x)
        polynomials /= np.sqrt(np.sum(polynomials**2 * density, axis=1))[:, None]
        a = polynomials @ (rate * density)
        ratio = rho ** (2.0 * orders[1:])
        variance = np.sum((rate - a[0]) ** 2 * density)
        expected = variance + 2 * np.sum(a[1:] ** 2 * ratio / (1 - ratio))
        mean, long_run_variance = rate_moments(snr, rho, carrier)
        assert mean == pytest.approx(a[0], rel=1e-6)
        assert long_run_variance == pytest.approx(expected, rel=5e-3)


@pytest.mark.parametrize("taps", [1, 2, 6])
@pytest.mark.parametrize("steps", [Steps(layers=2), Steps(smallest_part=0.25)], ids=["whole", "part"])
def test_all_orders_of_a_rate_in_steps_are_its_variance(taps: int, steps: Steps) -> None:
    """By Parseval's theorem, the a_m^2 of all orders sum to Var f.

    Orders beyond 256, which matter under slow fading, add 0.7 to 3 %; 120 bins sample them to a third of 0.7 %.
    """
    snr = np.array([0.5, 20.0, 300.0])
    variance, first = _steps_variance(snr, steps, taps), _steps_terms(snr, steps, taps).sum(axis=1)
    _, late = _late_steps(snr, steps, taps)
    assert np.all(first < (1 - 0.006) * variance)
    np.testing.assert_allclose(first + late.sum(axis=1), variance, rtol=0.003)


@pytest.mark.parametrize("taps", [1, 2])
def test_all_orders_of_a_capped_rate_are_its_variance(taps: int) -> None:
    """With caps, too, the a_m^2 sum to Var f; the more often links exceed the cap, the more is beyond order 256."""
    snr, cap = np.array([20.0, 300.0, 3000.0]), 2.0
    variance, squares = _capped_terms(snr, cap, taps)
    _, late = _late_terms(snr, cap, taps)
    missing = 1.0 - squares.sum(axis=1) / variance
    assert missing[1] > 0.1
    assert missing[2] > 0.8
    np.testing.assert_allclose(squares.sum(axis=1) + late.sum(axis=1), variance, rtol=0.003)


@pytest.mark.parametrize("parts", [2, 5, 11])
@pytest.mark.parametrize("rho", [0.5, 0.967])
def test_rate_moments_over_parts_are_those_of_simulated_parts(parts: int, rho: float) -> None:
    """The long-run variance equals that over batches of simulated slots much longer than the memory of fading."""
    snr, batches, slots = 10.0, 1500, 600
    steps, rng = Steps(layers=2, parts=parts), np.random.default_rng(3)
    noise = rng.standard_normal((slots, 2 * parts, batches)) / math.sqrt(2.0)
    h, total = noise[0], np.zeros(batches)
    for slot in range(slots):
        h = h if slot == 0 else rho * h + math.sqrt(1 - rho * rho) * noise[slot]
        total += steps.efficiency(snr * np.square(h).sum(axis=0) / parts)
    mean, variance = rate_moments(snr, rho, Carrier(1e6, 0.5e-3, steps=steps, taps=parts))
    # a batch's ends lower its variance by about 1 / (1 - rho^2) of its 600 slots
    assert total.mean() / slots == pytest.approx(
        float(mean), abs=5 * math.sqrt(float(variance) / slots / batches)
    )
    assert total.var() / slots == pytest.approx(float(variance), rel=5 * math.sqrt(2 / batches) + 0.03)
