"""Fading of a band with independent parts, and uplink power control."""

import math

import numpy as np
import pytest

from edgefl.channel.diversity import DiverseFading
from edgefl.channel.fading import LinkFading
from edgefl.channel.power_control import resource_blocks, wanted_power

TAPS, SLOTS = 8, 200_000


def fading(correlation: float) -> DiverseFading:
    return DiverseFading([LinkFading(11 ^ tap << 120, correlation) for tap in range(TAPS)])


def test_the_power_is_gamma_of_as_many_taps() -> None:
    """Independent in time: mean 1 and variance 1/L, of N draws of Gamma(L, 1/L) to within their errors."""
    power = fading(0.0).power(0, SLOTS)
    # variance of a sample variance: (excess kurtosis + 2) s^4 / N, and a Gamma's excess kurtosis is 6 / L
    error = np.sqrt((6 / TAPS + 2) / TAPS**2 / SLOTS)
    assert abs(power.mean() - 1) < 4 * np.sqrt(1 / TAPS / SLOTS)
    assert abs(power.var() - 1 / TAPS) < 4 * error


def test_it_is_a_function_of_the_slot() -> None:
    whole = fading(0.9).power(5, 100)
    assert fading(0.9).power(45, 10).tolist() == whole[40:50].tolist()
    still = fading(1.0)
    assert still.static
    assert still.power(0, 2).tolist() == [still.mean_power] * 2


def test_a_full_band_of_nr_has_its_resource_blocks() -> None:
    """273 blocks of 30 kHz subcarriers fill 98.28 MHz of 100 MHz (38.101-1, Table 5.3.2-1)."""
    assert resource_blocks(98.28e6, 0.5e-3) == pytest.approx(273)


def test_full_compensation_lets_all_arrive_with_p0() -> None:
    loss_db, blocks, limit_w = np.array([80.0, 100.0, 140.0]), 3.0, 0.2
    wanted = wanted_power(loss_db, blocks, limit_w, p0_dbm=-90.0, alpha=1.0, slot_s=1e-3)
    assert wanted * limit_w * 10 ** (-loss_db / 10) / blocks == pytest.approx(1e-12)
    assert wanted[2] > 1.0  # more than it has


@pytest.mark.parametrize(("slot_s", "mu"), [(1e-3, 0), (0.5e-3, 1), (0.25e-3, 2), (0.125e-3, 3)])
def test_power_is_that_of_the_standard(slot_s: float, mu: int) -> None:
    """P = P0 + 10 log10(2^mu M) + alpha PL dBm (38.213, 7.1.1), here of 51 blocks at a path loss of 100 dB."""
    p_dbm = -90.0 + 10.0 * math.log10(2**mu * 51) + 0.8 * 100.0
    share = wanted_power(100.0, 51.0, 0.2, p0_dbm=-90.0, alpha=0.8, slot_s=slot_s)
    assert 10.0 * math.log10(share * 0.2 / 1e-3) == pytest.approx(p_dbm)


@pytest.mark.parametrize("slot_s", [1e-3, 0.5e-3, 0.125e-3])
def test_what_arrives_in_a_hertz_does_not_depend_on_the_slot(slot_s: float) -> None:
    """A band of 36 MHz has fewer and wider blocks with shorter slots; P0 holds for 180 kHz."""
    share = wanted_power(100.0, resource_blocks(36e6, slot_s), 2.0, p0_dbm=-90.0, alpha=1.0, slot_s=slot_s)
    assert share * 2.0 * 1e-10 / 36e6 == pytest.approx(1e-12 / 180e3)


def test_partial_compensation_leaves_a_part_of_the_path_loss() -> None:
    share = wanted_power(np.array([90.0, 100.0]), 1.0, 0.2, p0_dbm=-80.0, alpha=0.8, slot_s=1e-3)
    assert share[1] / share[0] == pytest.approx(10**0.8)
