"""Test transfers on one link of 1 MHz with 0.5 ms slots, where 1 bit/s/Hz is 500 bits per slot."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel import transfer
from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.rates import rate_moments
from edgefl.channel.renewal import slots_renewal
from edgefl.channel.share import ergodic_rate
from edgefl.channel.tdd import Pattern, frame_of
from edgefl.channel.transfer import AUTO_SLOTS, Flow, long_enough
from tests.refusals import refused_at

BITS_PER_UNIT = 500.0
KEY = 2**90 + 1
FAST = 0.9667


def carrier(weights: Any = None, cap: float | None = None) -> Carrier:
    return Carrier(1e6, 0.5e-3, weights=weights, cap=cap)


def flow(weights: Any = None, cap: float | None = None, **link: Any) -> Flow:
    """Return a flow on that link, which fades as at about 10 m/s and begins in slot 0 by default."""
    return Flow(carrier(weights, cap), **{"fading": LinkFading(KEY, FAST), "first_slot": 0, **link})


def payload(slots: float, snr: float) -> float:
    """Return the bits that take `slots` slots at the ergodic rate."""
    return slots * float(ergodic_rate(snr)) * BITS_PER_UNIT


@pytest.mark.parametrize("blocks", [1, 3, 64])
def test_results_do_not_depend_on_how_reads_are_cut(blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> list[float]:
        fading = LinkFading(KEY, FAST)
        found: list[float] = []
        for first_slot in (0, 700, 5000):
            at: dict[str, Any] = {"snr": 10.0, "fading": fading, "first_slot": first_slot}
            found += [flow(**at).bits_carried(slots) for slots in (1, 1024, 30_000)]
            found += [flow(**at).slots_exact(payload(slots, 10.0)) for slots in (1, 1024, 30_000)]
        return found

    before = results()
    monkeypatch.setattr(transfer, "CHUNK_BLOCKS", blocks)
    assert results() == before


def test_nothing_takes_no_time() -> None:
    for rho in (FAST, 1.0):
        link: dict[str, Any] = {"snr": 1.0, "fading": LinkFading(KEY, rho), "first_slot": 3}
        assert flow(**link).slots_exact(0.0) == 0
        assert flow(**link).bits_carried(0) == 0.0
        for fidelity in ("slot", "renewal", "auto"):
            assert flow(fidelity=fidelity, direction="uplink", **link).slots(0.0) == 0
            assert flow(fidelity=fidelity, direction="uplink", **link).bits(5, 0.0) == 0.0


@given(need_slots=st.integers(1, 10**6), snr=st.floats(1e-3, 1e6), excess=st.sampled_from([-0.25, 0.0, 0.25]))
def test_a_static_link_is_solved_in_closed_form_at_every_fidelity(
    need_slots: int, snr: float, excess: float
) -> None:
    fading = LinkFading(KEY, 1.0)
    rate = math.log1p(snr * fading.power(0, 1)[0]) / math.log(2)
    bits = (need_slots + excess) * rate * BITS_PER_UNIT
    found = {
        flow(fidelity=fidelity, snr=snr, fading=fading, first_slot=9, direction="downlink").slots(bits)
        for fidelity in ("slot", "renewal", "auto")
    }
    # bits for a whole number of slots may be rounded either way; with a quarter slot more or less they cannot
    assert len(found) == 1
    assert found <= ({need_slots, need_slots + 1} if excess == 0 else {need_slots + (excess > 0)})
    moved = flow(snr=snr, fading=fading, first_slot=0).bits_carried(need_slots)
    assert moved == pytest.approx(need_slots * rate * BITS_PER_UNIT, rel=1e-14)


class _FixedNormal:
    """A stand-in for a random generator, whose normal draw X is given."""

    def __init__(self, x: float) -> None:
        self.x = x

    def standard_normal(self) -> float:
        return self.x


@pytest.mark.parametrize("x", [-3.0, 0.0, 2.0])
def test_renewal_solves_its_equation(x: float) -> None:
    # slots_renewal returns the first n with mu n - need >= X sqrt(s2 n)
    snr, bits = 5.0, payload(10_000, 5.0)
    rng: Any = _FixedNormal(x)
    count = slots_renewal(bits, carrier(), snr=snr, correlation=FAST, rng=rng)
    mean, variance = rate_moments(snr, FAST, carrier())
    n = np.array([count - 1, count])
    lead = mean * n - bits / BITS_PER_UNIT - x * np.sqrt(variance * n)
    assert lead[0] < 1e-6 * abs(mean)
    assert lead[1] > -1e-6 * abs(mean)


@pytest.mark.parametrize("direction", ["downlink", "uplink"])
def test_auto_is_slot_for_short_and_renewal_for_long_transfers(direction: Any) -> None:
    fading = LinkFading(KEY, FAST)
    at: dict[str, Any] = {"snr": 10.0, "fading": fading, "first_slot": 77, "direction": direction}
    short, long = payload(AUTO_SLOTS * 0.999, 10.0), payload(AUTO_SLOTS * 1.001, 10.0)
    assert flow(fidelity="auto", **at).slots(short) == flow(fidelity="slot", **at).slots(short)
    assert flow(fidelity="auto", **at).slots(long) == flow(fidelity="renewal", **at).slots(long)
    assert flow(fidelity="renewal", **at).slots(long) != flow(fidelity="slot", **at).slots(long)


def test_renewal_is_a_function_of_link_slot_and_direction() -> None:
    def draw(key: int, first_slot: int, direction: Any) -> int:
        return flow(
            fidelity="renewal",
            snr=1.0,
            fading=LinkFading(key, FAST),
            first_slot=first_slot,
            direction=direction,
        ).slots(payload(10**6, 1.0))

    assert draw(KEY, 5, "uplink") == draw(KEY, 5, "uplink")
    others = {
        draw(KEY, 5, "uplink"),
        draw(KEY, 5, "downlink"),
        draw(KEY, 6, "uplink"),
        draw(KEY + 1, 5, "uplink"),
    }
    assert len(others) == 4


def test_max_slots_is_inclusive() -> None:
    link: dict[str, Any] = {"snr": 1.0, "fading": LinkFading(KEY, FAST), "first_slot": 0}
    bits = payload(1500, 1.0)
    count = flow(**link).slots_exact(bits)
    assert flow(**link).slots_exact(bits, max_slots=count) == count
    with refused_at("", "slots", kind=ValueError):
        flow(**link).slots_exact(bits, max_slots=count - 1)


UPLINK = Pattern("DDDSU", "10:2:2").weights("uplink")
DOWNLINK = Pattern("DDDSU", "10:2:2").weights("downlink")


@settings(max_examples=60)
@given(
    slots=st.floats(0.01, 2000),
    snr=st.sampled_from([0.01, 1.0, 100.0, 1e6]),
    rho=st.sampled_from([0.5, FAST, 0.99966]),
    cap=st.sampled_from([None, 2.0]),
    weights=st.sampled_from([None, UPLINK, DOWNLINK]),
    first_slot=st.integers(0, 10 * BLOCK),
)
def test_slots_exact_is_the_first_slot_that_completes_the_payload(
    slots: float, snr: float, rho: float, cap: float | None, weights: Any, first_slot: int
) -> None:
    rules = {"weights": weights, "cap": cap}
    bits = slots * min(float(ergodic_rate(snr)), cap or math.inf) * BITS_PER_UNIT
    count = flow(snr=snr, fading=LinkFading(KEY, rho), first_slot=first_slot, **rules).slots_exact(bits)
    efficiency = np.log2(1 + snr * LinkFading(KEY, rho).power(first_slot, count))
    at = np.arange(first_slot, first_slot + count)
    rates = np.minimum(efficiency, cap or math.inf) * np.array(weights or [1.0])[at % len(weights or [1.0])]
    # the sums are taken in a different order, and round differently
    assert rates.sum() * BITS_PER_UNIT >= bits * (1 - 1e-12)
    assert rates[:-1].sum() * BITS_PER_UNIT < bits * (1 + 1e-12)
    # a transfer ends in a slot that serves it
    assert rates[-1] > 0
    moved = flow(snr=snr, fading=LinkFading(KEY, rho), first_slot=first_slot, **rules).bits_carried(count)
    assert moved == pytest.approx(rates.sum() * BITS_PER_UNIT, rel=1e-12)


def test_a_static_link_in_a_frame_by_hand() -> None:
    # at the cap of 1 bit/s/Hz a full slot carries 500 bits; U is slot 4, 9, ..., and S with 2/14 is slot 3, 8, ...
    link: dict[str, Any] = {"snr": 1e9, "fading": LinkFading(KEY, 1.0), "cap": 1.0, "weights": UPLINK}
    assert flow(first_slot=0, **link).slots_exact(60.0) == 4  # 500 x 2/14 = 71.4
    assert flow(first_slot=0, **link).slots_exact(500.0) == 5
    assert flow(first_slot=4, **link).slots_exact(500.0) == 1
    assert flow(first_slot=4, **link).slots_exact(500.5) == 5  # until slot S of the next period
    assert flow(first_slot=4, **link).slots_exact(600.0) == 6
    # 1,000 periods of 500 x 16/14
    assert flow(first_slot=0, **link).slots_exact(571_000.0) == 5000
    assert flow(first_slot=0, **link).bits_carried(5000) == pytest.approx(500 * 16 / 14 * 1000, rel=1e-12)
    for fidelity in ("slot", "renewal", "auto"):
        assert flow(fidelity=fidelity, first_slot=4, direction="uplink", **link).slots(500.5) == 5


def test_expected_slots_of_a_frame() -> None:
    # 16/70 of the time serves the uplink; the golden ergodic rate at SNR 10 is 2.906514808 bits/s/Hz
    bits = payload(1000, 10.0)
    assert flow(snr=10.0).expected_slots(1000 * 2.906514808 * BITS_PER_UNIT) == pytest.approx(1000, rel=1e-9)
    assert flow(snr=10.0, weights=UPLINK).expected_slots(bits) == pytest.approx(1000 / (16 / 70), rel=1e-12)
    assert flow(snr=1e12, cap=2.0).expected_slots(bits) == pytest.approx(bits / BITS_PER_UNIT / 2, rel=1e-9)


@pytest.mark.parametrize("x", [-2.0, 0.0, 1.0])
@pytest.mark.parametrize("first_slot", range(5))
def test_renewal_ends_where_the_frame_s_mean_has_moved_the_payload(x: float, first_slot: int) -> None:
    # slots_renewal returns the first n with mu airtime(n) - need >= X sqrt(s2 T), where T ignores the frame's phase
    snr, bits, rng = 5.0, payload(5000, 5.0), _FixedNormal(x)
    framed = carrier(UPLINK, 4.0)
    how: dict[str, Any] = {"snr": snr, "correlation": FAST, "rng": rng}
    count = slots_renewal(bits, framed, first_slot=first_slot, **how)
    mean, variance = (float(moment) for moment in rate_moments(snr, FAST, framed))
    need = bits / BITS_PER_UNIT
    # mu T - X sqrt(s2 T) - need = 0 is quadratic in sqrt(T)
    root = (x * math.sqrt(variance) + math.sqrt(x * x * variance + 4 * mean * need)) / (2 * mean)
    target = need + x * math.sqrt(variance) * root
    rate = mean / (16 / 70)
    moved = [rate * frame_of(UPLINK).airtime(first_slot, slots) for slots in (count - 1, count)]
    assert moved[0] < target * (1 + 1e-9)
    assert moved[1] > target * (1 - 1e-9)
    assert UPLINK[(first_slot + count - 1) % 5] > 0


@pytest.mark.parametrize("fidelity", ["slot", "renewal"])
@pytest.mark.parametrize("rho", [FAST, 1.0])
def test_bits_of_a_cut_transfer_grow_with_airtime(fidelity: Any, rho: float) -> None:
    bits, first_slot = payload(500, 10.0), 3
    at: dict[str, Any] = {
        "snr": 10.0,
        "fading": LinkFading(KEY, rho),
        "first_slot": first_slot,
        "weights": UPLINK,
        "cap": 6.0,
        "fidelity": fidelity,
        "direction": "uplink",
    }
    whole = flow(**at).slots(bits)
    moved = [flow(**at).bits(slots, bits) for slots in range(whole + 1)]
    grows = np.diff(moved) > 0
    # bits grow in S and U slots only, from slot 3 of the first period on
    np.testing.assert_array_equal(grows, np.array(UPLINK)[np.arange(first_slot, first_slot + whole) % 5] > 0)
    # multiplying the sum by W tau may round
    assert moved[-1] == pytest.approx(bits, rel=1e-12)
    assert flow(**at).bits(2 * whole, bits) == bits
    if fidelity == "slot":
        assert moved[whole // 2] == flow(**at).bits_carried(whole // 2)


def test_a_frame_makes_a_transfer_endless_sooner() -> None:
    # 1e8 slots at 1 bit/s/Hz exceed the limit if the frame serves a sixteenth of the time
    bits = 1e8 * BITS_PER_UNIT
    link: dict[str, Any] = {"snr": 1e3, "cap": 1.0, "first_slot": 0}
    sparse = (1.0, *[0.0] * 15)
    for fading in (LinkFading(KEY, FAST), LinkFading(KEY, 1.0)):
        with refused_at("", "slots", kind=ValueError):
            flow(fading=fading, weights=sparse, **link).slots_exact(bits)
    assert flow(fading=LinkFading(KEY, 1.0), **{**link, "snr": 1e12}).slots_exact(bits) == 10**8


@pytest.mark.parametrize(
    ("slots", "correlation", "renewal"),
    [
        (4096, 1 - 50 / 4096, True),  # fifty coherence times of 4096 / 50 slots, exactly
        (4096, 1 - 49 / 4096, False),
        (AUTO_SLOTS, 0.5, True),
        (AUTO_SLOTS - 1, 0.5, False),
    ],
)
def test_auto_draws_by_renewal_from_fifty_coherence_times_on(
    slots: float, correlation: float, renewal: bool
) -> None:
    assert long_enough(slots, correlation) == renewal
