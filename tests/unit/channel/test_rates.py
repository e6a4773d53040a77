import math

import numpy as np
import pytest
from scipy import integrate, special

from channel.rates import rate_moments

FAST = 0.9667


@pytest.mark.parametrize("snr", [0.05, 1.3, 40.0])
@pytest.mark.parametrize("rho", [0.0, 0.3, -0.6])
def test_rate_moments_are_the_laguerre_series(snr: float, rho: float) -> None:
    # a_m = E[f L_m] by numerical integration: no integration by parts, no table. rho^(2m) < 1e-8 from m = 18.
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
    mean, long_run_variance = rate_moments(snr, rho)
    assert mean == pytest.approx(coefficient(0), rel=1e-9)
    # the table's interpolation
    assert long_run_variance == pytest.approx(series, rel=2e-4)


@pytest.mark.parametrize("rho", [0.0, FAST, 0.99966])
def test_rate_moments_limits(rho: float) -> None:
    ln2 = math.log(2)
    # log2(1 + snr g) ~ snr g / ln 2: only L_1 = 1 - g, a_1^2 = (snr / ln 2)^2
    snr = 1e-8
    first = (snr / ln2) ** 2 * (1 + rho**2) / (1 - rho**2)
    assert rate_moments(snr, rho)[1] == pytest.approx(first, rel=1e-4)
    # log2(1 + snr g) ~ log2 snr + log2 g: a_m = -1 / (m ln 2), and Var log2 g = pi^2 / (6 ln^2 2)
    m = np.arange(1.0, 200_000.0)
    ratio = rho ** (2 * m)
    high = (math.pi**2 / 6 + 2 * np.sum(ratio / (m**2 * (1 - ratio)))) / ln2**2
    assert rate_moments(1e13, rho)[1] == pytest.approx(high, rel=1e-4)


def test_rate_moments_of_many_devices_are_those_of_each() -> None:
    snr = np.array([0.1, 3.0, 1e5])
    rho = np.array([0.2, FAST, 0.9999])
    means, variances = rate_moments(snr, rho)
    assert means.shape == variances.shape == (3,)
    for i in range(3):
        mean, variance = rate_moments(snr[i], rho[i])
        np.testing.assert_allclose([mean, variance], [means[i], variances[i]], rtol=1e-13)
    assert rate_moments(snr, FAST)[1].shape == (3,)


def test_bad_values_are_named() -> None:
    with pytest.raises(ValueError, match="static"):
        rate_moments(1.0, 1.0)
    with pytest.raises(ValueError, match="snr"):
        rate_moments([1.0, 0.0], 0.5)
