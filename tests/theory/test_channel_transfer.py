"""Compare the renewal fidelity with slot-exact transfers.

One long link carries the transfers six coherence times apart, so that their powers have a correlation of only e^-12.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy import special

from edgefl.channel.carrier import Carrier
from edgefl.channel.diversity import fading_in_parts
from edgefl.channel.fading import LinkFading, slot_correlation
from edgefl.channel.modulation import Steps
from edgefl.channel.rates import rate_moments
from edgefl.channel.renewal import slots_renewal
from edgefl.channel.share import ergodic_rate
from edgefl.channel.transfer import AUTO_SLOTS, Flow

KEY = 0x5EED << 64
SEED = 17
BAND = Carrier(1e6, 0.5e-3)
RADIO = {"carrier_hz": 3.5e9, "slot_s": 0.5e-3}
MEAN_TOLERANCE = 0.002
STD_TOLERANCE = 0.03
STANDARD_ERRORS = 4
SIGNIFICANCE = 1e-3


def transfers_by_slot(bits: float, snr: float, rho: float, count: int, band: Carrier = BAND) -> np.ndarray:
    link = fading_in_parts(KEY, rho, band.taps)
    gap = math.ceil(-6 / math.log(rho))
    slots = np.empty(count)
    first_slot = 0
    for i in range(count):
        slots[i] = Flow(band, snr, link, first_slot).slots_exact(bits)
        first_slot += int(slots[i]) + gap
    return slots


def transfers_by_renewal(bits: float, snr: float, rho: float, count: int, band: Carrier = BAND) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    draw: dict[str, Any] = {"snr": snr, "correlation": rho, "rng": rng}
    return np.array([slots_renewal(bits, band, **draw) for _ in range(count)])


def payload(slots: float, snr: float) -> float:
    return slots * float(ergodic_rate(snr)) * BAND.unit_bits


@pytest.mark.parametrize(
    ("snr_db", "speed_m_s", "slots", "count"),
    [(20.0, 10.0, 1000, 9_000), (0.0, 30.0, 1000, 9_000), (50.0, 10.0, 1000, 9_000)],
)
def test_renewal_has_the_mean_and_spread_of_slot_exact(
    snr_db: float, speed_m_s: float, slots: int, count: int
) -> None:
    snr = 10 ** (snr_db / 10)
    rho = slot_correlation(speed_m_s, **RADIO)
    bits = payload(slots, snr)
    # The sample is large enough for the tolerances: to leading order, Var N = s2 / mu^2 x slots.
    mean, long_run_variance = (float(moment) for moment in rate_moments(snr, rho, BAND))
    spread = math.sqrt(long_run_variance * slots) / mean / slots
    assert STANDARD_ERRORS * spread / math.sqrt(count) < MEAN_TOLERANCE
    assert STANDARD_ERRORS / math.sqrt(2 * count) < STD_TOLERANCE

    exact = transfers_by_slot(bits, snr, rho, count)
    # In closed form, the renewal law is ceil(T), with T Birnbaum-Saunders of scale b and shape a
    scale, shape = slots, math.sqrt(long_run_variance / (slots * mean**2))
    renewal_mean = scale * (1 + shape**2 / 2) + 0.5
    renewal_std = math.sqrt((scale * shape) ** 2 * (1 + 1.25 * shape**2) + 1 / 12)
    assert exact.mean() == pytest.approx(renewal_mean, rel=MEAN_TOLERANCE)
    assert exact.std() == pytest.approx(renewal_std, rel=STD_TOLERANCE)

    # the draws follow the renewal law
    drawn = transfers_by_renewal(bits, snr, rho, count)
    assert abs(drawn.mean() - renewal_mean) < STANDARD_ERRORS * renewal_std / math.sqrt(count)
    assert drawn.std() == pytest.approx(renewal_std, rel=STD_TOLERANCE)


@pytest.mark.parametrize(("coherence_times", "at_least", "at_most"), [(50, 0.9, 1.1), (2, 1.15, 1.5)])
def test_renewal_spreads_too_widely_below_its_limit(
    coherence_times: int, at_least: float, at_most: float
) -> None:
    """At 0 dB and 10 m/s, standard deviations by renewal and by slot have a ratio near 1 at `auto`'s limit."""
    snr, rho, count = 1.0, slot_correlation(10.0, **RADIO), 3000
    assert STANDARD_ERRORS / math.sqrt(count) < 0.1, "the ratio's error must be small"
    bits = payload(coherence_times / (1 - rho), snr)
    ratio = transfers_by_renewal(bits, snr, rho, count).std() / transfers_by_slot(bits, snr, rho, count).std()
    assert at_least < ratio < at_most


def test_slow_rates_take_longer_than_need_over_mean() -> None:
    # At 0 dB and 10 m/s, s2 / (2 mu^2) adds 7 slots to need / mu, which are 0.7 % of 1,000 slots.
    snr, rho, slots, count = 1.0, slot_correlation(10.0, **RADIO), 1000, 10_000
    mean, long_run_variance = (float(moment) for moment in rate_moments(snr, rho, BAND))
    exact = transfers_by_slot(payload(slots, snr), snr, rho, count)
    standard_error = math.sqrt(long_run_variance / mean**2 * slots / count)
    longer = long_run_variance / (2 * mean**2) + 0.5
    assert longer > STANDARD_ERRORS * standard_error
    assert abs(exact.mean() - slots - longer) < STANDARD_ERRORS * standard_error


@pytest.mark.parametrize(
    ("snr_db", "rules"),
    [
        (20.0, {}),
        (3.0, {"steps": Steps(layers=2), "weights": (1.0, 1.0, 1.0, 5 / 7, 0.0)}),
        (-4.0, {"steps": Steps(smallest_part=0.0625)}),
        (8.0, {"steps": Steps(), "taps": 4}),
    ],
)
def test_renewal_is_indistinguishable_at_2900_slots(snr_db: float, rules: dict[str, Any]) -> None:
    """Samples at 10 m/s pass a Kolmogorov-Smirnov test with Shannon's rates, NR's steps, a frame, and band parts."""
    snr, rho, slots, count = 10 ** (snr_db / 10), slot_correlation(10.0, **RADIO), 2900, 3000
    band = Carrier(1e6, 0.5e-3, **rules)
    bits = slots * float(band.mean_efficiency(snr)) * band.frame.mean * band.unit_bits
    exact = np.sort(transfers_by_slot(bits, snr, rho, count, band))
    drawn = np.sort(transfers_by_renewal(bits, snr, rho, count, band))
    at = np.concatenate([exact, drawn])
    below = [np.searchsorted(sample, at, side="right") / count for sample in (exact, drawn)]
    assert np.abs(below[0] - below[1]).max() < special.kolmogi(SIGNIFICANCE) * math.sqrt(2 / count)


def test_a_weak_link_with_steps_is_drawn_slot_by_slot() -> None:
    """At 9 dB below the lowest step, one slot in 2,800 carries bits, so fifty coherence times have too few bursts."""
    rho, band = slot_correlation(10.0, **RADIO), Carrier(1e6, 0.5e-3, steps=Steps())
    link = LinkFading(KEY, rho)
    weak, strong = (float(band.steps.lowest_snr) * 10 ** (db / 10) for db in (-9.0, 20.0))
    for snr, renewal in ((weak, False), (strong, True)):
        flow = Flow(band, snr, link, 0)
        rate = float(band.mean_efficiency(snr)) * band.unit_bits
        assert flow.by_renewal(4 * AUTO_SLOTS * rate) == renewal
        assert flow.by_renewal(400 * AUTO_SLOTS * rate), "sums over many slots are normal"
