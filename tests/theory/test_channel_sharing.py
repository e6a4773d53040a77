"""Compare frames, caps and schedulers with theory.

With independent slots (rho = 0), long-run shares and rates are expectations over iid exponential powers.
"""

import math

import numpy as np
import pytest
from scipy import special

from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import LinkFading
from edgefl.channel.rates import rate_moments
from edgefl.channel.renewal import slots_renewal
from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.max_rate import MaxRate
from edgefl.channel.schedulers.min_max_latency import MinMaxLatency
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.share import ergodic_rate
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Pattern, Weights
from edgefl.channel.transfer import Flow
from tests.unit.channel.test_shared_band import Watched

KEY = 0xBA2D << 64
BAND = Carrier(1e6, 0.5e-3)
UNIT_BITS = 500.0
UPLINK = Pattern("DDDSU", "10:2:2").weights("uplink")
DOWNLINK = Pattern("DDDSU", "10:2:2").weights("downlink")
MEAN_TOLERANCE = 0.002
STD_TOLERANCE = 0.03
STANDARD_ERRORS = 4


@pytest.mark.parametrize(
    ("snr_db", "rho", "weights", "cap", "slots"),
    [(10.0, 0.95, UPLINK, None, 2000), (20.0, 0.9667, DOWNLINK, 7.4, 1500), (25.0, 0.95, None, 7.4, 1000)],
)
def test_renewal_with_frame_and_cap_has_the_mean_and_spread_of_slot_exact(
    snr_db: float, rho: float, weights: Weights | None, cap: float | None, slots: int
) -> None:
    snr, count = 10 ** (snr_db / 10), 9_000
    carrier = Carrier(1e6, 0.5e-3, weights, cap)
    mean, long_run_variance = (float(moment) for moment in rate_moments(snr, rho, carrier))
    shape = math.sqrt(long_run_variance / (slots * mean**2))
    assert STANDARD_ERRORS * shape / math.sqrt(count) < MEAN_TOLERANCE
    assert STANDARD_ERRORS / math.sqrt(2 * count) < STD_TOLERANCE

    # transfers follow each other on a long link, six coherence times apart
    link, gap = LinkFading(KEY, rho), math.ceil(-6 / math.log(rho))
    exact, first_slot = np.empty(count), 0
    for i in range(count):
        exact[i] = Flow(carrier, snr, link, first_slot).slots_exact(slots * mean * UNIT_BITS)
        # transfers begin at every phase of the frame in turn
        first_slot += int(exact[i]) + gap
        first_slot += (i - first_slot) % 5
    # moments by Birnbaum and Saunders; rounding up by about half a slot is within the tolerance
    renewal_mean = slots * (1 + shape**2 / 2)
    renewal_std = slots * shape * math.sqrt(1 + 1.25 * shape**2)
    assert exact.mean() == pytest.approx(renewal_mean, rel=MEAN_TOLERANCE)
    assert exact.std() == pytest.approx(renewal_std, rel=STD_TOLERANCE)


def serve(
    scheduler: Scheduler, snrs: list[float], slots: int, rho: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Return each flow's share of the slots and its mean rate in bits/s/Hz."""
    log: dict[int, tuple[int, np.ndarray, np.ndarray]] = {}
    band = SharedBand(Watched(scheduler, log), BAND)
    for i, snr in enumerate(snrs):
        # a payload that no flow can finish
        bits = 10 * slots * math.log2(1 + snr) * UNIT_BITS
        band.add(i, bits, snr_whole_band=snr, fading=LinkFading(KEY + i, rho), slot=0)
    band.settle(slots)
    counts = np.bincount([log[slot][0] for slot in range(slots)], minlength=len(snrs))
    moved = np.array([band.moved_bits(i) for i in range(len(snrs))])
    return counts / slots, moved / (UNIT_BITS * slots)


def test_proportional_fair_gives_unequal_flows_equal_time() -> None:
    # At low SNR the rate is snr g / ln 2 with iid g, and the flow with the larger g / (its average g) wins. By
    # symmetry, each flow has half of the slots, and in these the larger of two g, with E[max] = 3/2.
    slots, snrs = 40_000, [1e-4, 1e-5, 1e-6]
    time, rate = serve(ProportionalFair(beta=0.999), snrs[:2], slots)
    # choices alternate rather than repeat, so the binomial error is an upper bound
    assert time == pytest.approx([0.5, 0.5], abs=STANDARD_ERRORS * 0.5 / math.sqrt(slots))
    # E[max^2] = 7/2, so g x win has the second moment 7/4, the mean 3/4, and the variance 7/4 - 9/16
    error = STANDARD_ERRORS * math.sqrt(7 / 4 - 9 / 16) / 0.75 / math.sqrt(slots)
    assert rate / (np.array(snrs[:2]) / math.log(2)) == pytest.approx([0.75, 0.75], rel=error)
    # each of three flows has H_3 = 1 + 1/2 + 1/3 times its mean rate, in a third of the slots
    time, rate = serve(ProportionalFair(beta=0.999), snrs, slots)
    assert time == pytest.approx([1 / 3] * 3, abs=STANDARD_ERRORS * math.sqrt(2 / 9 / slots))
    assert rate / (np.array(snrs) / math.log(2)) == pytest.approx([11 / 18] * 3, rel=error * 1.5)


def test_proportional_fair_settles_where_its_averages_say() -> None:
    # At any SNR, T_k = E[f_k; f_k / T_k is the largest] is a fixed point over iid g, found on a grid of quantiles.
    snrs, slots = [1.0, 100.0], 40_000
    g = -np.log1p(-(np.arange(800) + 0.5) / 800)
    f = [np.log2(1 + snr * g) for snr in snrs]
    average = np.array([rate.mean() / 2 for rate in f])
    for _ in range(80):
        first = f[0][:, None] / average[0] > f[1] / average[1]
        wins = np.array([(f[0][:, None] * first).mean(), (f[1] * ~first).mean()])
        average = 0.5 * (average + wins)
    time, rate = serve(ProportionalFair(beta=0.999), snrs, slots)
    # the standard deviation of the rate in a served slot is at most about its mean
    error = STANDARD_ERRORS / math.sqrt(slots / 2)
    assert rate == pytest.approx(average, rel=error)
    assert time[0] == pytest.approx(first.mean(), rel=error)
    # unlike at low SNR, the weaker flow's rate varies more, so it gains more from the scheduler's choice
    assert rate[0] / float(ergodic_rate(snrs[0])) > rate[1] / float(ergodic_rate(snrs[1])) > 0.5


def test_max_rate_moves_the_most() -> None:
    # the maximum of n iid g at low SNR is H_n times the mean rate, and the flows share it equally
    slots, count, snr = 20_000, 4, 1e-5
    time, rate = serve(MaxRate(), [snr] * count, slots)
    harmonic = 25 / 12
    # the maximum has variance 1 + 1/4 + 1/9 + 1/16
    error = STANDARD_ERRORS * math.sqrt(205 / 144 / slots)
    assert rate.sum() / (snr / math.log(2)) == pytest.approx(harmonic, abs=error)
    assert time == pytest.approx([0.25] * count, abs=STANDARD_ERRORS * math.sqrt(3 / 16 / slots))
    # a far flow starves: it wins only if its g is above a thousand times the near flow's g, with probability 1 / 1001
    time, _ = serve(MaxRate(), [1e-3, 1e-6], slots)
    assert time[1] == pytest.approx(1 / 1001, abs=STANDARD_ERRORS * math.sqrt(1e-3 / slots))


def test_round_robin_shares_time_and_ignores_the_channel() -> None:
    slots, snrs = 30_000, [0.1, 1.0, 10.0]
    time, rate = serve(RoundRobin(), snrs, slots)
    assert time == pytest.approx([1 / 3] * 3, abs=1 / slots)
    spread = np.sqrt([float(rate_moments(snr, 0.0, BAND)[1]) for snr in snrs]) / ergodic_rate(snrs)
    error = STANDARD_ERRORS * spread / np.sqrt(slots / 3)
    assert np.all(np.abs(rate / (ergodic_rate(snrs) / 3) - 1) < error)


def test_min_max_latency_ends_fading_flows_closer_together_than_equal_shares() -> None:
    # Fading averages out over payloads of some thousand slots, so end times differ only by the transfers' spread.
    rho, snrs, bits = 0.9, [0.3, 3.0, 300.0], [3e5, 2e6, 1e6]

    def ends(scheduler: Scheduler) -> list[int]:
        band = SharedBand(scheduler, BAND)
        for i, (snr, payload) in enumerate(zip(snrs, bits, strict=True)):
            band.add(i, payload, snr_whole_band=snr, fading=LinkFading(KEY + i, rho), slot=0)
        found = []
        while (following := band.next_end()) is not None:
            found += [following[0]] * len(band.settle(following[0]))
        return found

    together, equal = ends(MinMaxLatency()), ends(EqualShare())
    # the largest relative spread of a transfer, sqrt(s2 / (mu^2 n)) at its share
    view = Flows(BAND, snr=np.array(snrs), remaining_bits=np.array(bits))
    shares = MinMaxLatency().shares(view)
    mean, variance = rate_moments(np.array(snrs) / shares, rho, BAND)
    spread = np.sqrt(variance / mean**2 / together[-1]).max()
    assert together[-1] - together[0] < 2 * STANDARD_ERRORS * spread * together[-1]
    assert together[-1] - together[0] < 0.1 * (equal[-1] - equal[0])
    assert together[-1] < equal[-1]
    # end times are as expected, to within the spread
    expected = float((view.remaining_bits / view.mean_rate(shares)).max()) / UNIT_BITS
    assert together[-1] == pytest.approx(expected, rel=STANDARD_ERRORS * spread)


def test_renewal_and_slot_exact_agree_in_law_with_frame_and_cap() -> None:
    # two-sample Kolmogorov-Smirnov test of transfers of some thousand slots that begin at the same phase
    snr, rho, count = 10.0, 0.9667, 3000
    carrier = Carrier(1e6, 0.5e-3, UPLINK, 6.0)
    bits = 4000 * float(rate_moments(snr, rho, carrier)[0]) * UNIT_BITS
    exact = [Flow(carrier, snr, LinkFading(KEY + i, rho), 0).slots_exact(bits) for i in range(count)]
    rng = np.random.default_rng(3)
    drawn = [slots_renewal(bits, carrier, snr=snr, correlation=rho, rng=rng) for _ in range(count)]
    # transfers end only in S or U slots
    assert set(np.array(exact) % 5) == set(np.array(drawn) % 5) == {4, 0}
    at = np.sort(np.concatenate([exact, drawn]))
    below = [np.searchsorted(np.sort(sample), at, side="right") / count for sample in (exact, drawn)]
    assert np.abs(below[0] - below[1]).max() < special.kolmogi(1e-3) * math.sqrt(2 / count)
