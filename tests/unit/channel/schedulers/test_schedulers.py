import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel.carrier import Carrier
from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.max_rate import MaxRate
from edgefl.channel.schedulers.min_max_latency import MinMaxLatency
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.share import ergodic_rate
from tests.refusals import refused_at

# relative difference allowed between finishing times that should be equal
TOGETHER = 1e-6


def flows(snr: Any, remaining_bits: Any = None, **more: Any) -> Flows:
    count = len(snr)
    per_slot = {name: np.ones(count) for name in ("efficiency", "average", "airtime")}
    more = {name: np.asarray(value) for name, value in more.items() if name in per_slot} | {
        name: value for name, value in more.items() if name not in per_slot
    }
    bits = np.ones(count) if remaining_bits is None else np.asarray(remaining_bits, dtype=float)
    carrier = Carrier(1e6, 0.5e-3, cap=more.pop("cap", None), power=more.pop("power", "full"))
    return Flows(carrier, snr=np.asarray(snr, dtype=float), remaining_bits=bits, **{**per_slot, **more})


@st.composite
def any_flows(draw: st.DrawFn) -> Flows:
    count = draw(st.integers(1, 12))
    snr_db = draw(st.lists(st.floats(-60, 90), min_size=count, max_size=count))
    bits = draw(st.lists(st.floats(1, 1e9), min_size=count, max_size=count))
    return flows(
        10 ** (np.array(snr_db) / 10),
        bits,
        static=np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count))),
        cap=draw(st.sampled_from([None, 1.0, 7.4])),
        power=draw(st.sampled_from(["full", "per_resource_block"])),
    )


@pytest.mark.parametrize("cls", [EqualShare, RoundRobin, ProportionalFair, MaxRate, MinMaxLatency])
@settings(max_examples=40)
@given(of=any_flows())
def test_shares_divide_the_band(cls: type[Scheduler], of: Flows) -> None:
    shares = cls().shares(of)
    assert shares.shape == (len(of),)
    assert np.all(shares >= 0)
    assert shares.sum() == pytest.approx(1.0, rel=1e-12)
    # schedulers are frozen: equal parameters make them equal
    assert cls() == cls()
    assert cls().per_slot in (True, False)


EQUALLY_GOOD = flows([1, 1, 1, 1], efficiency=[5.0, 5.0, 1.0, 5.0], airtime=[3.0, 2.0, 0.0, 2.0])
FORGOTTEN = flows([1, 1, 1, 1], efficiency=[5.0, 2.0, 3.0, 0.0], average=[5.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(
    ("scheduler", "of", "shares"),
    [
        (EqualShare(), flows([1.0, 5.0, 9.0, 2.0]), [0.25] * 4),
        # the least served flow, or on a tie the flow that joined first
        (RoundRobin(), flows([1, 1, 1], airtime=[2.0, 1.0, 1.0]), [0, 1, 0]),
        (MaxRate(), flows([1, 1, 1], efficiency=[2.0, 1.0, 3.0]), [0, 0, 1]),
        (MaxRate(), EQUALLY_GOOD, [0, 1, 0, 0]),
        (
            ProportionalFair(),
            flows([1, 1, 1], efficiency=[2.0, 1.0, 3.0], average=[1.0, 0.4, 2.0]),
            [0, 1, 0],
        ),
        # all but the last served flow have an average of 0; in the fuzzer, this case made NumPy warn
        (ProportionalFair(beta=0), FORGOTTEN, [0, 0, 1, 0]),
    ],
)
def test_shares_by_hand(scheduler: Scheduler, of: Flows, shares: list[float]) -> None:
    with np.errstate(all="raise"):
        assert scheduler.shares(of).tolist() == shares


def test_equally_good_channels_are_served_in_the_order_of_what_they_had() -> None:
    assert MaxRate().order(EQUALLY_GOOD).tolist() == [1, 3, 0, 2]


@settings(max_examples=60)
@given(of=any_flows(), seed=st.integers(0, 2**32 - 1))
def test_min_max_latency_finishes_together_and_no_other_split_is_faster(of: Flows, seed: int) -> None:
    shares = MinMaxLatency().shares(of)
    ends = of.remaining_bits / of.mean_rate(shares)
    assert ends.max() < ends.min() * (1 + TOGETHER)
    # with any other split, close to this split or not, some flow ends later
    rng = np.random.default_rng(seed)
    for spread in (1e-4, 0.1, 3.0):
        other = shares * np.exp(spread * rng.standard_normal(len(of)))
        later = of.remaining_bits / of.mean_rate(other / other.sum())
        assert later.max() > ends.max() * (1 - TOGETHER)


def test_min_max_latency_by_hand() -> None:
    # per resource block on static links, rates are proportional to shares; 30 bits at log2(1 + 7) = 3 bits/s/Hz and
    # 20 bits at log2(1 + 1) = 1 need the whole band for 10 and 20
    static = np.array([True, True])
    of = flows([7.0, 1.0], [30.0, 20.0], static=static, power="per_resource_block")
    np.testing.assert_allclose(MinMaxLatency().shares(of), [1 / 3, 2 / 3], rtol=1e-15)
    # full power: at shares of 1/4 and 3/4, log2(1 + 0.75 / 0.25) / 4 = 0.5 and log2(1 + 5.25 / 0.75) x 3/4 = 2.25
    of = flows([0.75, 5.25], [1.0, 4.5], static=static)
    np.testing.assert_allclose(MinMaxLatency().shares(of), [0.25, 0.75], rtol=1e-8)


def test_min_max_latency_says_when_shares_no_longer_matter() -> None:
    # at an SNR of 1e-17 all shares have the same rate, to the last digit
    static = np.array([True, True])
    with refused_at("", 1e-17, "per_resource_block", kind=ValueError):
        MinMaxLatency().shares(flows([1e-17, 1e-3], [1e-6, 1.0], static=static))


def test_mean_rate_of_fading_and_static_flows() -> None:
    of = flows([4.0, 4.0], static=np.array([False, True]), cap=3.5)
    # on half the band the SNR doubles
    expected = [0.5 * float(ergodic_rate(8.0, 3.5)), 0.5 * math.log2(9.0)]
    np.testing.assert_allclose(of.mean_rate(0.5), expected, rtol=1e-14)
    np.testing.assert_allclose(flows([4.0]).mean_rate([1.0]), ergodic_rate([4.0]), rtol=1e-14)
