"""Test stepwise rates, diversity, and transfers with a changing SNR."""

import math

import numpy as np
import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.changing_flow import ChangingFlow
from edgefl.channel.fading import LinkFading
from edgefl.channel.modulation import EFFICIENCIES, Steps, _snr_needed, diversity_rate
from edgefl.channel.share import ergodic_rate
from edgefl.channel.transfer import Flow

# modulation order and code rate x 1024 of CQI 1 to 15, TS 38.214, Table 5.2.2.1-3
ORDERS = [2, 2, 2, 4, 4, 4, 6, 6, 6, 6, 6, 8, 8, 8, 8]
CODES = [78, 193, 449, 378, 490, 616, 466, 567, 666, 772, 873, 711, 797, 885, 948]


def test_the_table_is_bits_per_symbol_times_code_rate() -> None:
    exact = np.array(ORDERS) * np.array(CODES) / 1024
    assert np.abs(np.array(EFFICIENCIES) - exact).max() <= 0.5e-4 + 1e-12  # printed with four decimals


def test_a_rate_is_carried_from_its_snr_on() -> None:
    steps = Steps(gap_db=2.0)
    needs = _snr_needed(EFFICIENCIES, 2.0)
    assert needs == pytest.approx(10**0.2 * (2 ** np.array(EFFICIENCIES) - 1))
    assert steps.efficiency(needs * (1 + 1e-12)).tolist() == list(EFFICIENCIES)
    assert steps.efficiency(needs * (1 - 1e-12)).tolist() == [0.0, *EFFICIENCIES[:-1]]
    assert Steps(cap=5.2).efficiency(1e9) == 5.1152


LAYERED = [Steps(layers=2), Steps(layers=4), Steps(cap=5.2, layers=8), Steps(smallest_part=1 / 16)]


@pytest.mark.parametrize("steps", [Steps(), Steps(0.0), Steps(3.3), Steps(cap=5.2), Steps(cap=0.2), *LAYERED])
def test_many_are_looked_up_as_one_is_searched_for(steps: Steps) -> None:
    """The look-up by leading bits equals a search at every step's SNR, its neighbours, powers of 2, and both ends."""
    at = np.concatenate([steps.needs, 2.0 ** np.arange(-40, 41), 2.0 ** np.arange(-40, 41) * 1.125])
    ends = [0.0, -0.0, 5e-324, 1e-300, 1e300, np.inf]
    draws = 10 ** np.random.default_rng(3).uniform(-6, 6, 2000)
    snr = np.concatenate([at, np.nextafter(at, 0), np.nextafter(at, np.inf), ends, draws])
    rates = steps.rates[np.searchsorted(steps.needs, snr, side="right")]
    assert (steps.efficiency(snr) == rates).all()
    assert (
        steps.efficiency(snr[:2000].reshape(2, -1)[:, ::-1]) == rates[:2000].reshape(2, -1)[:, ::-1]
    ).all()
    assert steps.efficiency(snr[:7]).tolist() == rates[:7].tolist()


@pytest.mark.parametrize(
    ("steps", "times"),
    [(Steps(layers=4), [1, 2, 3, 4]), (Steps(smallest_part=1 / 8), [1 / 8, 1 / 4, 1 / 2, 1])],
)
def test_the_best_of_all_layers_and_parts_by_trying_them(steps: Steps, times: list[float]) -> None:
    """l layers have l times the rate at 1/l of the SNR; 1/l of the band has 1/l of the rate at l times the SNR."""
    one = Steps()
    draws = 10 ** np.random.default_rng(3).uniform(-3, 5, 3000)
    tried = [time * one.efficiency(draws / time) for time in times]
    assert steps.efficiency(draws) == pytest.approx(np.max(tried, axis=0), abs=1e-12)


def test_four_layers_reach_the_peak_that_the_standard_computes() -> None:
    """38.306, 4.1.2: 4 layers x 8 bit x 948/1024 x 273 x 12 / (0.5 ms / 14) x (1 - 0.14) = 2.337 Gbit/s at 100 MHz.

    The band here has no guard bands (100 MHz instead of 98.28 MHz) and no cyclic prefixes (7 % of the time).
    """
    standard = 4 * 8 * 948 / 1024 * 273 * 12 / (0.5e-3 / 14) * 0.86
    carrier = Carrier(100e6, 0.5e-3, steps=Steps(layers=4), goodput=0.86)
    here = carrier.unit_bits / 0.5e-3 * float(carrier.efficiency(1e6))
    assert standard == pytest.approx(2.337e9, rel=1e-3)
    assert here == pytest.approx(standard * (100 / 98.28) * (15 / 14), rel=0.01)


def test_where_nothing_goes_a_sixteenth_of_the_band_still_carries() -> None:
    assert Steps(smallest_part=1 / 16).lowest_snr == pytest.approx(Steps().lowest_snr / 16)
    assert Steps(layers=4).lowest_snr == Steps().lowest_snr


@pytest.mark.parametrize("taps", [1, 4])
def test_the_mean_over_fading_is_that_of_many_draws(taps: int) -> None:
    draws = 200_000
    power = np.random.default_rng(3).gamma(taps, 1 / taps, draws)
    for snr in (0.1, 3.0, 300.0):
        rates = Steps().efficiency(snr * power)
        error = rates.std() / np.sqrt(draws)
        assert abs(rates.mean() - Steps().mean_efficiency(snr, taps)) < 4 * error
        rates = np.log2(1 + snr * power)
        assert abs(rates.mean() - diversity_rate(snr, taps)) < 4 * rates.std() / np.sqrt(draws)


@pytest.mark.parametrize("cap", [None, 4.0])
def test_one_tap_is_rayleigh(cap: float | None) -> None:
    snr = np.logspace(-4, 6, 21)
    assert diversity_rate(snr, 1, cap) == pytest.approx(ergodic_rate(snr, cap), rel=1e-9)


def test_overheads_and_second_transmissions_take_their_share_of_the_bits() -> None:
    carrier = Carrier(10e6, 0.5e-3, goodput=0.86 * 0.97 / 1.1)
    assert carrier.unit_bits == pytest.approx(10e6 * 0.5e-3 * 0.7583636363636364)


@pytest.mark.parametrize("steps", [None, Steps()])
@pytest.mark.parametrize("weights", [None, (1.0, 0.5, 0.0)])
def test_readings_that_find_the_same_change_nothing(
    steps: Steps | None, weights: tuple[float, ...] | None
) -> None:
    carrier = Carrier(1e6, 0.5e-3, weights=weights, steps=steps)
    fading, payload, first = LinkFading(5, 0.99), 3e6, 17
    flow = Flow(carrier, 8.0, fading, first, fidelity="slot")
    whole = flow.slots(payload)
    for interval in (1, 7, 400, 10**6):
        changing, slot, end = ChangingFlow(carrier, fading, payload, first), first, None
        while end is None:
            until = slot - slot % interval + interval
            end = changing.end(slot, 8.0, until)
            slot = until
        assert end == first + whole
    changing = ChangingFlow(carrier, fading, payload, first)
    changing.end(first, 8.0, first + 500)
    changing.settle(first + 300)
    assert changing.bits == flow.bits(300, payload)


def informed(snr: np.ndarray, bits: int) -> np.ndarray:
    """Return the mean information [draws] at parts' SNRs [parts, draws], 2 dB from Shannon's limit, up to `bits`."""
    return np.minimum(np.log2(1 + snr / 10**0.2), bits).mean(axis=0)


@pytest.mark.parametrize("parts", [2, 4, 11])
def test_a_code_over_parts_needs_the_mean_snr_at_which_they_inform_enough(parts: int) -> None:
    """At the required mean SNR, parts with gains uniform on a simplex carry the rate's bits on average."""
    rng, draws = np.random.default_rng(5), 100_000
    steps = Steps(parts=parts)
    drawn = rng.exponential(size=(parts, draws))
    drawn *= parts / drawn.sum(axis=0)
    for rate, need, bits in zip(EFFICIENCIES, steps.needs.tolist(), ORDERS, strict=True):
        informs = informed(need * drawn, bits)
        assert informs.mean() == pytest.approx(rate, abs=5 * informs.std() / math.sqrt(draws))
    assert (steps.needs > Steps().needs).all()  # by Jensen's inequality


@pytest.mark.parametrize("parts", [2, 11])
def test_rates_over_parts_are_those_of_codes_over_parts_drawn_one_by_one(parts: int) -> None:
    """At each mean power the rate equals that of codes that decode if the band's parts carry enough information.

    Slots of equal mean power differ in information, more so with two parts than with many.
    """
    drawn = np.random.default_rng(7).exponential(size=(parts, 40_000))
    steps = Steps(parts=parts)
    for snr in 10 ** (np.array([-7.0, 0.0, 10.0, 25.0]) / 10):
        by_bits = {bits: informed(snr * drawn, bits) for bits in set(ORDERS)}
        carried = [
            np.where(by_bits[bits] >= rate, rate, 0.0)
            for rate, bits in zip(EFFICIENCIES, ORDERS, strict=True)
        ]
        each, by_mean = np.max(carried, axis=0), steps.efficiency(snr * drawn.mean(axis=0))
        assert by_mean.mean() == pytest.approx(each.mean(), rel=0.02)
        assert float(steps.mean_efficiency(snr, parts)) == pytest.approx(by_mean.mean(), rel=0.02)
