import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from channel.ofdma import equal_share, ergodic_rate, mean_snr, spectral_efficiency
from channel.units import db_to_linear, dbm_to_watt, linear_to_db


def test_equal_share_splits_the_band() -> None:
    assert equal_share(100e6, 8) == 12.5e6
    assert equal_share(100e6, 1) == 100e6


@pytest.mark.parametrize("devices", [0, -1])
def test_nobody_cannot_share(devices: int) -> None:
    with pytest.raises(ValueError, match="devices"):
        equal_share(100e6, devices)


def test_no_band_cannot_be_shared() -> None:
    with pytest.raises(ValueError, match="bandwidth_hz"):
        equal_share(0.0, 1)


def test_spectral_efficiency_is_shannon() -> None:
    np.testing.assert_allclose(spectral_efficiency([0.0, 1.0, 3.0, 1023.0]), [0, 1, 2, 10], rtol=1e-15)
    # 1 + 1e-20 rounds to 1; the rate must not round to 0
    assert spectral_efficiency(1e-20) == pytest.approx(1e-20 / math.log(2), rel=1e-15)


def test_mean_snr_link_budget() -> None:
    # 23 dBm - 100 dB - (-174 dBm/Hz + 80 dB Hz) = 17 dB on 100 MHz, 10 dB more on a tenth of it
    for bandwidth_hz, snr_db in ((100e6, 17.0), (10e6, 27.0)):
        snr = mean_snr(dbm_to_watt(23.0), db_to_linear(-100.0), dbm_to_watt(-174.0), bandwidth_hz)
        assert linear_to_db(snr) == pytest.approx(snr_db, abs=1e-12)


def test_mean_snr_needs_noise_and_bandwidth() -> None:
    with pytest.raises(ValueError, match="noise_psd_w_hz"):
        mean_snr(0.2, 1e-10, 0.0, 1e6)
    with pytest.raises(ValueError, match="bandwidth_hz"):
        mean_snr(0.2, 1e-10, 4e-21, 0.0)


def test_ergodic_rate_golden_values() -> None:
    # e^(1/g) E1(1/g) / ln 2 with mpmath, printed to nine decimals
    golden = {1: 0.860347382, 10: 2.906514808, 100: 5.884048234, 1000: 9.143619491}
    np.testing.assert_allclose(ergodic_rate(list(golden)), list(golden.values()), rtol=0, atol=5.1e-10)


@pytest.mark.parametrize("snr", [0.01, 1 / 31, 1 / 30, 1 / 29, 0.3, 20.0])
def test_ergodic_rate_is_the_mean_over_fading_on_both_sides_of_its_switch(snr: float) -> None:
    mean, _ = integrate.quad(lambda g: math.log2(1 + snr * g) * math.exp(-g), 0, 60, epsabs=0, epsrel=1e-12)
    # beyond g = 60 lie e^-60 of the probability
    assert ergodic_rate(snr) == pytest.approx(mean, rel=1e-11)


def test_ergodic_rate_limits() -> None:
    assert ergodic_rate(0.0) == 0
    # E log2(1 + snr g) = snr (1 - snr + ...) / ln 2
    assert ergodic_rate(1e-200) == pytest.approx(1e-200 / math.log(2), rel=1e-14)
    # and log2 snr - gamma / ln 2 for huge snr
    high = math.log2(1e200) - np.euler_gamma / math.log(2)
    assert ergodic_rate(1e200) == pytest.approx(high, rel=1e-14)


@given(snr_db=st.floats(-120, 150))
def test_fading_costs_rate(snr_db: float) -> None:
    snr = db_to_linear(snr_db)
    assert 0 < ergodic_rate(snr) < spectral_efficiency(snr)


def test_negative_snr_is_refused() -> None:
    with pytest.raises(ValueError, match="snr"):
        ergodic_rate([1.0, -1.0])
