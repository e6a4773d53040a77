import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from edgefl.channel.share import ergodic_rate, limited_shares, noise_w, share_snr, spectral_efficiency
from edgefl.channel.units import db_to_linear, dbm_to_watt, linear_to_db


def test_spectral_efficiency_is_shannon() -> None:
    np.testing.assert_allclose(spectral_efficiency([0.0, 1.0, 3.0, 1023.0]), [0, 1, 2, 10], rtol=1e-15)
    # although 1 + 1e-20 rounds to 1, the rate must not round to 0
    assert spectral_efficiency(1e-20) == pytest.approx(1e-20 / math.log(2), rel=1e-15)


def test_mean_snr_link_budget() -> None:
    # 23 dBm - 100 dB - (-174 dBm/Hz + 80 dB Hz) = 17 dB on 100 MHz, 10 dB more on a tenth of it
    for bandwidth_hz, snr_db in ((100e6, 17.0), (10e6, 27.0)):
        snr = dbm_to_watt(23.0) * db_to_linear(-100.0) / noise_w(dbm_to_watt(-174.0), bandwidth_hz)
        assert linear_to_db(snr) == pytest.approx(snr_db, abs=1e-12)


def test_ergodic_rate_golden_values() -> None:
    # e^(1/g) E1(1/g) / ln 2 with mpmath, printed to nine decimals
    golden = {1: 0.860347382, 10: 2.906514808, 100: 5.884048234, 1000: 9.143619491}
    np.testing.assert_allclose(ergodic_rate(list(golden)), list(golden.values()), rtol=0, atol=5.1e-10)


@pytest.mark.parametrize("snr", [0.01, 1 / 31, 1 / 30, 1 / 29, 0.3, 20.0])
def test_ergodic_rate_is_the_mean_over_fading_on_both_sides_of_its_switch(snr: float) -> None:
    mean, _ = integrate.quad(lambda g: math.log2(1 + snr * g) * math.exp(-g), 0, 60, epsabs=0, epsrel=1e-12)
    # the probability of g beyond 60 is e^-60
    assert ergodic_rate(snr) == pytest.approx(mean, rel=1e-11)


def test_ergodic_rate_limits() -> None:
    assert ergodic_rate(0.0) == 0
    # E log2(1 + snr g) = snr (1 - snr + ...) / ln 2
    assert ergodic_rate(1e-200) == pytest.approx(1e-200 / math.log(2), rel=1e-14)
    # for a huge SNR the rate is log2 snr - gamma / ln 2
    high = math.log2(1e200) - np.euler_gamma / math.log(2)
    assert ergodic_rate(1e200) == pytest.approx(high, rel=1e-14)


def test_noise_figure_and_interference_margin_raise_the_noise() -> None:
    # 17 dB as above, less 7 dB of noise figure, and less 3 and 5 dB of margin
    noise = noise_w(dbm_to_watt(-174.0), 100e6, noise_figure_db=7.0, interference_margin_db=[3.0, 5.0])
    snr = dbm_to_watt(23.0) * db_to_linear(-100.0) / noise
    np.testing.assert_allclose(linear_to_db(snr), [7.0, 5.0], atol=1e-12)


def test_power_over_a_share() -> None:
    # on a quarter of the band the SNR is four times as high with full power, and unchanged with power per block
    for rule, factor, power_w in (("full", 4.0, 0.2), ("per_resource_block", 1.0, 0.05)):
        on_share = power_w * 1e-10 / noise_w(4e-21, 25e6)
        whole = 0.2 * 1e-10 / noise_w(4e-21, 100e6)
        assert on_share == pytest.approx(factor * whole, rel=1e-14)
        assert share_snr(0.25, whole, rule) == pytest.approx(on_share, rel=1e-14)  # type: ignore[arg-type]


@pytest.mark.parametrize("snr", [1e-3, 0.3, 25.0, 1e4, 1e9])
@pytest.mark.parametrize("cap", [0.5, 7.4])
def test_capped_ergodic_rate_is_the_mean_over_fading(snr: float, cap: float) -> None:
    # integrate to the g that reaches the cap; beyond it the cap holds
    edge = (2**cap - 1) / snr
    below, _ = integrate.quad(
        lambda g: math.log2(1 + snr * g) * math.exp(-g), 0, min(edge, 60), epsabs=0, epsrel=1e-12, limit=200
    )
    mean = below + cap * math.exp(-edge)
    assert ergodic_rate(snr, cap) == pytest.approx(mean, rel=1e-10)
    assert ergodic_rate([snr], cap)[0] == pytest.approx(mean, rel=1e-10)
    assert spectral_efficiency(snr, cap) == min(math.log1p(snr) / math.log(2), cap)


@given(snr_db=st.floats(-200, 200), cap=st.one_of(st.none(), st.floats(0.1, 60)))
def test_one_rate_is_that_of_an_array(snr_db: float, cap: float | None) -> None:
    snr = 10 ** (snr_db / 10)
    assert ergodic_rate(snr, cap) == pytest.approx(ergodic_rate([snr, 1.0], cap)[0], rel=1e-13)


def test_capped_ergodic_rate_limits() -> None:
    for limit in (ergodic_rate(math.inf, 7.4), ergodic_rate([math.inf], 7.4)[0], ergodic_rate(1e300, 7.4)):
        assert limit == pytest.approx(7.4, rel=1e-12)
    assert ergodic_rate(0.0, 7.4) == 0
    # a cap beyond the largest 2^cap is never reached
    assert ergodic_rate(10.0, 5000.0) == ergodic_rate(10.0)
    assert ergodic_rate([10.0], 5000.0)[0] == pytest.approx(ergodic_rate(10.0), rel=1e-15)


@pytest.mark.parametrize("seed", range(20))
def test_limited_shares_leave_nothing_that_another_can_use(seed: int) -> None:
    """Shares below their limits are in proportion to the wanted shares; bisection finds the common factor."""
    rng = np.random.default_rng(seed)
    share = rng.dirichlet(np.ones(6)) * rng.choice([0.5, 1.0])
    share[rng.random(6) < 0.2] = 0.0
    most = rng.choice([0.05, 0.2, 1.0], 6)
    given = limited_shares(share, most)
    low, high = 0.0, 1e9
    for _ in range(200):
        factor = (low + high) / 2
        low, high = (factor, high) if np.minimum(factor * share, most).sum() < share.sum() else (low, factor)
    expected = np.minimum(high * share, most)
    assert given == pytest.approx(expected, abs=1e-9)
    assert given.sum() <= share.sum() + 1e-12
    assert limited_shares(share, np.ones(6)).tolist() == share.tolist()
