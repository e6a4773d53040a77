"""Test flows that share a band of 1 MHz with 0.5 ms slots, where 1 bit/s/Hz on the whole band is 500 bits per slot.

Static links far above a cap of 1 bit/s/Hz carry exactly 500 b bits per slot on a share b.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel import shared_band
from edgefl.channel.carrier import MAX_SLOTS, Carrier
from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.max_rate import MaxRate
from edgefl.channel.schedulers.min_max_latency import MinMaxLatency
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Pattern, Weights
from edgefl.channel.transfer import Flow

UNIT_BITS = 500.0
FAST = 0.9667
UPLINK = Pattern("DDDSU", "10:2:2").weights("uplink")
STATIC: dict[str, Any] = {"snr_whole_band": 1e9, "fading": LinkFading(1, 1.0)}
# the static links of this key and the next seven are at most 2 dB below their mean
KEY = 7
ALL: list[Scheduler] = [EqualShare(), RoundRobin(), ProportionalFair(), MaxRate(), MinMaxLatency()]
NAMES = [type(scheduler).__name__ for scheduler in ALL]


def band_of(scheduler: Scheduler, **rules: Any) -> SharedBand:
    return SharedBand(scheduler, Carrier(1e6, 0.5e-3, **rules))


def by_hand(scheduler: Scheduler, **rules: Any) -> SharedBand:
    return band_of(scheduler, cap=1.0, **rules)


def ends_of(band: SharedBand) -> dict[Any, int]:
    """Run the band until it is empty, and return the slot at which each flow ends."""
    ends: dict[Any, int] = {}
    while (following := band.next_end()) is not None:
        slot, ids = following
        assert band.settle(slot) == ids
        ends |= dict.fromkeys(ids, slot)
    return ends


def test_a_flow_that_ends_leaves_its_share_to_the_other() -> None:
    band = by_hand(EqualShare())
    band.add("a", 5_000, slot=0, **STATIC)
    band.add("b", 10_000, slot=0, **STATIC)
    # each has 250 bits per slot, so a ends after 20 slots; then b has 5,000 bits left, at 500 per slot
    assert band.next_end() == (20, ["a"])
    assert band.settle(20) == ["a"]
    assert band.moved_bits("b") == 5_000
    assert band.next_end() == (30, ["b"])
    assert len(band) == 1
    assert band.settle(30) == ["b"]
    assert len(band) == 0
    assert band.next_end() is None


def test_a_flow_that_joins_takes_its_share() -> None:
    band = by_hand(EqualShare())
    band.add("a", 10_000, slot=5, **STATIC)
    assert band.next_end() == (25, ["a"])
    band.add("b", 1_000, slot=9, **STATIC)
    # a moves 2,000 bits in slots 5 to 8, and 250 per slot in 4 slots shared with b; then it has 7,000 left
    assert band.moved_bits("a") == 2_000
    assert ends_of(band) == {"b": 13, "a": 27}


def test_a_flow_that_is_cut_off_keeps_what_it_moved() -> None:
    band = by_hand(EqualShare())
    band.add("a", 5_000, slot=0, **STATIC)
    band.add("b", 5_000, slot=0, **STATIC)
    assert band.remove("a", 8) == 2_000
    # b moves 2,000 bits in 8 slots, and 3,000 more in 6
    assert band.next_end() == (14, ["b"])
    # a flow that leaves at the slot boundary where it ends is complete
    assert band.remove("b", 14) == 5_000
    assert band.next_end() is None
    assert band.settle(14) == []


def test_flows_that_end_together_are_handed_out_together() -> None:
    band = by_hand(EqualShare())
    for name in ("c", "a", "b"):
        band.add(name, 990, slot=0, **STATIC)
    # each has 166.7 bits per slot; they end in the order in which they joined
    assert band.next_end() == (6, ["c", "a", "b"])
    assert band.settle(6) == ["c", "a", "b"]


def test_a_frame_serves_in_its_slots_only() -> None:
    # the uplink of DDDSU has 500 bits x 2/14 = 71.4 in slots 3, 8, ..., and 500 in slots 4, 9, ...
    for scheduler in ALL:
        band = by_hand(scheduler, weights=UPLINK)
        band.add("a", 571.5, slot=0, **STATIC)
        # 71.4 + 500 bits in the first period just fall short
        assert band.next_end() == (9, ["a"])
        assert band.settle(3) == []
        assert band.moved_bits("a") == 0
        assert band.settle(5) == []
        assert band.moved_bits("a") == pytest.approx(500 * 16 / 14, rel=1e-12)


def test_power_over_a_share() -> None:
    # at a static SNR of 3, half the band carries log2(1 + 6) / 2 with full power, and log2(1 + 3) / 2 = 1 otherwise
    link = LinkFading(1, 1.0)
    snr = 3.0 / float(link.power(0, 1)[0])
    for power, rate in (("full", math.log2(7) / 2), ("per_resource_block", 1.0)):
        band = band_of(EqualShare(), power=power)  # type: ignore[arg-type]
        for name in "ab":
            band.add(name, 1e6, snr_whole_band=snr, fading=link, slot=0)
        band.settle(100)
        assert band.moved_bits("a") == pytest.approx(100 * rate * UNIT_BITS, rel=1e-12)


@dataclass(frozen=True)
class InEverySlot(Scheduler):
    """A scheduler of equal shares that is called in each slot."""

    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> np.ndarray:
        return np.full(len(flows), 1 / len(flows))


@pytest.mark.parametrize("scheduler", [EqualShare(), InEverySlot()], ids=["held", "by slot"])
def test_neighbours_send_as_many_shares_as_are_in_use(scheduler: Scheduler) -> None:
    """With SNR 3 and interference 2 K while K flows share the band, the SINR on a share b is 3 / (1 + 2 K) / b."""
    link = LinkFading(1, 1.0)
    snr = 3.0 / float(link.power(0, 1)[0])
    band = band_of(scheduler)
    half = math.log2(1 + 3 / (1 + 2 * 2) / 0.5) / 2  # rate of each of two flows, bits/s/Hz
    for name, slots in (("a", 10), ("b", 20)):
        band.add(
            name, slots * half * UNIT_BITS * 0.999, snr_whole_band=snr, neighbours=2.0, fading=link, slot=0
        )
    assert band.next_end() == (10, ["a"])
    assert band.settle(10) == ["a"]
    whole = math.log2(1 + 3 / (1 + 2 * 1))
    left = math.ceil((20 * 0.999 - 10) * half / whole)
    assert band.next_end() == (10 + left, ["b"])


def test_neighbours_of_one_at_a_time_send_one_share() -> None:
    link = LinkFading(1, 1.0)
    snr = 3.0 / float(link.power(0, 1)[0])
    band = band_of(RoundRobin())
    for name in "ab":
        band.add(name, 1e6, snr_whole_band=snr, neighbours=2.0, fading=link, slot=0)
    band.settle(100)
    for name in "ab":
        assert band.moved_bits(name) == pytest.approx(50 * math.log2(1 + 3 / 3) * UNIT_BITS, rel=1e-12)


def test_shares_that_are_sent_are_counted() -> None:
    band = by_hand(EqualShare())
    band.add("a", 5_000, slot=5, **STATIC)
    band.add("b", 10_000, slot=5, **STATIC)
    band.settle(12)
    assert band.sent_slots == 2 * 7
    assert ends_of(band) == {"a": 25, "b": 35}
    assert band.sent_slots == 2 * 20 + 10
    band.settle(50)
    assert band.sent_slots == 2 * 20 + 10, "the band is empty"
    for scheduler, many in ((RoundRobin(), 1), (MaxRate(), 1), (InEverySlot(), 2), (EqualShare(), 2)):
        framed = by_hand(scheduler, weights=UPLINK)
        for name in "ab":
            framed.add(name, 1e6, slot=0, **STATIC)
        framed.settle(100)
        assert framed.sent_slots == pytest.approx(many * 20 * 16 / 14, rel=1e-12)


@pytest.mark.parametrize("scheduler", ALL, ids=NAMES)
@pytest.mark.parametrize("weights", [None, UPLINK])
@pytest.mark.parametrize("cap", [None, 3.0])
def test_alone_a_flow_is_a_transfer(scheduler: Scheduler, weights: Weights | None, cap: float | None) -> None:
    for slots, first_slot in ((3, 7), (700, 1000), (3000, 5)):
        carrier = Carrier(1e6, 0.5e-3, weights, cap)
        alone = Flow(carrier, 10.0, LinkFading(9, FAST), first_slot)
        bits = slots * UNIT_BITS
        band = SharedBand(scheduler, carrier)
        band.add(0, bits, snr_whole_band=10.0, fading=LinkFading(9, FAST), slot=first_slot)
        count = alone.slots_exact(bits)
        assert band.next_end() == (first_slot + count, [0])
        band.settle(first_slot + count // 2)
        assert band.moved_bits(0) == alone.bits_carried(count // 2)


@dataclass(frozen=True)
class Join:
    slot: int
    bits: int
    snr: float
    rho: float
    stays: int | None  # slots after which the flow is cut off


@st.composite
def joins(draw: st.DrawFn) -> list[Join]:
    """Draw up to eight flows that join and leave, in order of time."""
    found = draw(
        st.lists(
            st.builds(
                Join,
                slot=st.integers(0, 400),
                bits=st.integers(0, 300_000),
                snr=st.sampled_from([0.05, 1.0, 10.0, 1e4]),
                rho=st.sampled_from([1.0, FAST, 0.3]),
                stays=st.one_of(st.none(), st.integers(1, 600)),
            ),
            min_size=1,
            max_size=8,
        )
    )
    return sorted(found, key=lambda join: join.slot)


def play(band: SharedBand, story: list[Join], look: Iterable[tuple[int, bool]] = ()) -> dict[int, tuple]:
    """Return the slot and bits of each flow's end or cut-off; look: slots at which to settle the band or plan it."""
    changes = [(join.slot, 1, i) for i, join in enumerate(story)]
    changes += [(join.slot + join.stays, 0, i) for i, join in enumerate(story) if join.stays is not None]
    # in each slot, looks are first, then departures, then arrivals
    changes += [(slot, -1 - settles, 0) for slot, settles in look]
    result: dict[int, tuple] = {}

    def hand_out(until: float) -> None:
        while (following := band.next_end()) is not None and following[0] <= until:
            for i in band.settle(following[0]):
                result[i] = (following[0], story[i].bits)

    for slot, what, i in sorted(changes):
        hand_out(slot)
        if what == 1:
            join = story[i]
            band.add(i, join.bits, snr_whole_band=join.snr, fading=LinkFading(i + KEY, join.rho), slot=slot)
        elif what == 0 and i not in result:
            result[i] = (slot, band.remove(i, slot))
        elif what == -1:
            band.next_end(horizon=slot + 97)
        elif what == -2:
            band.settle(max(slot, band.slot))
    hand_out(math.inf)
    return result


@pytest.mark.parametrize("scheduler", ALL, ids=NAMES)
@settings(max_examples=12)
@given(
    story=joins(),
    look=st.lists(st.tuples(st.integers(0, 1500), st.booleans()), max_size=25),
    weights=st.sampled_from([None, UPLINK]),
    power=st.sampled_from(["full", "per_resource_block"]),
)
def test_looking_changes_nothing(
    scheduler: Scheduler, story: list[Join], look: list, weights: Weights | None, power: Any
) -> None:
    rules: dict[str, Any] = {"weights": weights, "power": power, "cap": 6.0}
    untouched = play(band_of(scheduler, **rules), story)
    # equal to the last bit
    assert play(band_of(scheduler, **rules), story, look) == untouched
    assert untouched.keys() == set(range(len(story)))


def slot_by_slot(scheduler: Scheduler, story: list[Join], weights: Weights, power: Any) -> dict[int, tuple]:
    """Return the results of `play`, computed by brute force with shares decided slot by slot."""
    links = [LinkFading(i + KEY, join.rho) for i, join in enumerate(story)]
    moved: dict[int, float] = {}
    airtime: dict[int, float] = {}
    result: dict[int, tuple] = {}
    slot = 0
    while len(result) < len(story):
        for i in [i for i in moved if story[i].slot + (story[i].stays or math.inf) == slot]:
            result[i] = (slot, moved.pop(i))
        for i in [i for i, join in enumerate(story) if join.slot == slot]:
            if story[i].bits == 0:
                result[i] = (slot, 0.0)
            else:
                airtime[i] = min((airtime[j] for j in moved), default=0.0)
                moved[i] = 0.0
        if moved:
            ids = list(moved)
            snr = np.array([story[i].snr * links[i].power(slot, 1)[0] for i in ids])
            view = Flows(
                Carrier(1e6, 0.5e-3, power=power),
                snr=snr,
                remaining_bits=np.array([story[i].bits - moved[i] for i in ids]),
                efficiency=np.log2(1 + snr),
                airtime=np.array([airtime[i] for i in ids]),
            )
            weight = weights[slot % len(weights)]
            shares = scheduler.shares(view)
            rates = view.carrier.share_rate(shares, snr)
            for i, share, rate in zip(ids, shares, rates, strict=True):
                moved[i] += weight * float(rate) * UNIT_BITS
                airtime[i] += weight * float(share)
                if weight > 0 and moved[i] >= story[i].bits:
                    result[i] = (slot + 1, story[i].bits)
                    del moved[i]
        slot += 1
    return result


@pytest.mark.parametrize("scheduler", [EqualShare(), RoundRobin(), MaxRate()])
@settings(max_examples=15)
@given(
    story=joins(),
    weights=st.sampled_from([(1.0,), (1.0, 0.0, 0.5)]),
    power=st.sampled_from(["full", "per_resource_block"]),
)
def test_as_slot_by_slot_the_long_way(
    scheduler: Scheduler, story: list[Join], weights: Weights, power: Any
) -> None:
    # weights are binary fractions, so that airtime is exact and ties are exact
    story = [join for join in story if join.snr > 0.1] or [Join(0, 100_000, 1.0, FAST, None)]
    expected = slot_by_slot(scheduler, story, weights, power)
    found = play(band_of(scheduler, weights=weights, power=power), story)
    for i, (slot, bits) in expected.items():
        assert found[i][0] == slot
        # the band sums bits, the brute force bits/s/Hz
        assert found[i][1] == pytest.approx(bits, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("power", ["full", "per_resource_block"])
def test_a_scheduler_may_split_every_slot(power: Any) -> None:
    story = [Join(40 * i, 100_000, 10.0**i, FAST, 300 if i == 2 else None) for i in range(4)]
    held = play(band_of(EqualShare(), power=power), story)
    split = play(band_of(InEverySlot(), power=power), story)
    for i in range(4):
        assert split[i] == pytest.approx(held[i], rel=1e-12)


@dataclass(frozen=True)
class Watched(Scheduler):
    """A scheduler that records another scheduler's choices and inputs."""

    scheduler: Scheduler
    log: dict
    per_slot: ClassVar[bool] = True

    @property
    def memory(self) -> float | None:
        return self.scheduler.memory

    def shares(self, flows: Flows) -> np.ndarray:
        shares = self.scheduler.shares(flows)
        self.log[flows.slot] = (int(shares.argmax()), flows.efficiency.copy(), flows.average.copy())
        return shares


def watch(scheduler: Scheduler, slots: int, **rules: Any) -> dict:
    log: dict = {}
    band = band_of(Watched(scheduler, log), **rules)
    for i, snr in enumerate((0.5, 5.0, 50.0)):
        band.add(i, 1e9, snr_whole_band=snr, fading=LinkFading(i + 1, FAST), slot=0)
    band.settle(slots)
    # the band may have planned more slots, which are left out
    return {slot: log[slot] for slot in sorted(log) if slot < slots}


def test_round_robin_takes_turns() -> None:
    log = watch(RoundRobin(), 300)
    assert [log[slot][0] for slot in range(300)] == [0, 1, 2] * 100


def test_round_robin_shares_a_frame_s_special_slots() -> None:
    # with two flows and alternating S and U slots, counting turns would give all U slots to one flow
    log = watch(RoundRobin(), 5000, weights=UPLINK)
    served = np.zeros(3)
    for slot in log:
        served[log[slot][0]] += UPLINK[slot % 5]
        assert served.max() - served.min() <= 1 + 1e-9
    assert served.sum() == pytest.approx(5000 * 16 / 70)


def test_max_rate_picks_the_maximum_of_every_slot() -> None:
    log = watch(MaxRate(), 300)
    for slot, (winner, efficiency, _) in log.items():
        expected = [
            math.log2(1 + snr * LinkFading(i + 1, FAST).power(slot, 1)[0])
            for i, snr in enumerate((0.5, 5.0, 50.0))
        ]
        np.testing.assert_allclose(efficiency, expected, rtol=1e-12)
        assert winner == np.argmax(expected)


def test_proportional_fair_forgets_by_beta() -> None:
    beta = 0.9
    log = watch(ProportionalFair(beta=beta), 200, weights=(1.0, 0.5, 0.0))
    slots = list(log)
    assert slots == [slot for slot in range(200) if slot % 3 < 2]
    for now, then in pairwise(slots):
        winner, efficiency, average = log[now]
        assert winner == np.argmax(efficiency / average)
        decay = beta ** (1.0, 0.5)[now % 3]
        served = np.where(np.arange(3) == winner, efficiency, 0.0)
        np.testing.assert_allclose(log[then][2], decay * average + (1 - decay) * served, rtol=1e-12)


def test_a_newcomer_starts_with_a_fair_share_and_no_claim_on_the_past() -> None:
    log: dict = {}
    for scheduler, until in ((ProportionalFair(), 1001), (RoundRobin(), 1100)):
        band = band_of(Watched(scheduler, log))
        band.add("old", 1e9, snr_whole_band=10.0, fading=LinkFading(1, FAST), slot=0)
        band.settle(1000)
        band.add("new", 1e9, snr_whole_band=10.0, fading=LinkFading(2, FAST), slot=1000)
        band.settle(until)
        if until == 1001:  # the golden ergodic rate at SNR 10, halved
            assert log[1000][2][1] == pytest.approx(2.906514808 / 2, rel=1e-9)
    # from here on, round robin alternates
    assert [log[slot][0] for slot in range(1000, 1100)] == [0, 1] * 50


@pytest.mark.parametrize("power", ["full", "per_resource_block"])
def test_min_max_latency_ends_static_flows_together(power: Any) -> None:
    band = band_of(MinMaxLatency(), power=power)
    for i, (bits, snr) in enumerate([(1e5, 0.1), (3e5, 10.0), (2e6, 1e3)]):
        band.add(i, bits, snr_whole_band=snr, fading=LinkFading(i + 1, 1.0), slot=0)
    slot, ids = band.next_end()  # type: ignore[misc]
    assert ids == [0, 1, 2]
    # the transfer ends no later than with equal shares that are redistributed
    equal = band_of(EqualShare(), power=power)
    for i, (bits, snr) in enumerate([(1e5, 0.1), (3e5, 10.0), (2e6, 1e3)]):
        equal.add(i, bits, snr_whole_band=snr, fading=LinkFading(i + 1, 1.0), slot=0)
    assert slot <= max(ends_of(equal).values())


def test_a_horizon_ends_the_look_ahead() -> None:
    band = by_hand(EqualShare())
    band.add("a", 50_000, slot=0, **STATIC)
    assert band.next_end(horizon=99) == (99, [])
    assert band.next_end(horizon=100) == (100, ["a"])
    assert band.next_end(horizon=99) == (99, [])
    assert band.next_end() == (100, ["a"])
    band.settle(50)
    with pytest.raises(ValueError, match="49"):
        band.next_end(horizon=49)


def test_an_empty_payload_ends_where_it_joins() -> None:
    band = by_hand(EqualShare())
    band.add("a", 0, slot=7, **STATIC)
    assert band.next_end() == (7, ["a"])
    assert band.settle(7) == ["a"]


def test_long_plans_are_cut_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    def results() -> tuple:
        band = band_of(EqualShare())
        for i in range(5):
            band.add(
                i,
                3 * BLOCK * UNIT_BITS * (i + 1),
                snr_whole_band=10.0,
                fading=LinkFading(i + 1, FAST),
                slot=i,
            )
        band.settle(3 * BLOCK + 5)
        return [band.moved_bits(i) for i in range(5)], ends_of(band)

    before = results()
    monkeypatch.setattr(shared_band, "_LARGEST_RUN", 1)
    assert results() == before


def test_misuse_is_named() -> None:
    band = by_hand(EqualShare())
    band.add("a", 5_000, slot=3, **STATIC)
    with pytest.raises(ValueError, match="'a'"):
        band.add("a", 5_000, slot=3, **STATIC)
    with pytest.raises(ValueError, match="slot 2"):
        band.settle(2)
    with pytest.raises(ValueError, match="slot 13"):
        band.settle(14)
    with pytest.raises(ValueError, match="'b'"):
        band.remove("b", 4)
    band.add("b", 1.0, slot=13, **STATIC)
    with pytest.raises(ValueError, match="slot 13"):
        band.add("c", 1.0, slot=14, **STATIC)
    with pytest.raises(ValueError, match="'a'"):
        band.add("a", 1.0, slot=13, **STATIC)
    assert band.moved_bits("a") == 5_000


def test_transfers_that_cannot_end_are_refused() -> None:
    band = band_of(EqualShare(), power="per_resource_block", cap=1.0)
    # alone, a flow needs 3e8 slots at 1 bit/s/Hz
    with pytest.raises(ValueError, match=str(MAX_SLOTS)):
        band.add("a", 3e8 * UNIT_BITS, slot=0, **STATIC)
    # alone, each needs 1.5e8 slots; together they need 3e8
    for name in "ab":
        band.add(name, 1.5e8 * UNIT_BITS, slot=0, **STATIC)
    with pytest.raises(ValueError, match="2 flows"):
        band.next_end()


@pytest.mark.parametrize("scheduler", [EqualShare(), RoundRobin()], ids=["held", "per slot"])
def test_how_long_a_band_has_run_is_no_limit_of_its_transfers(scheduler: Scheduler) -> None:
    """A transfer may take MAX_SLOTS, but a band runs without limit, beyond 28 hours of 0.5 ms slots."""
    began = [0, MAX_SLOTS, 3 * MAX_SLOTS]
    band = by_hand(scheduler)
    for slot in began:
        band.settle(slot)
        band.add(slot, 50_000, slot=slot, **STATIC)
        assert band.next_end() == (slot + 100, [slot])
        assert band.settle(slot + 100) == [slot]


@dataclass(frozen=True)
class Fixed(Scheduler):
    values: tuple[float, ...] = ()
    per_slot: bool = False  # type: ignore[misc]

    def shares(self, flows: Flows) -> np.ndarray:
        return np.array(self.values)


@pytest.mark.parametrize("per_slot", [False, True])
@pytest.mark.parametrize(
    ("values", "message"),
    [((0.7, 0.7), "1.4"), ((-0.5, 1.0), ">= 0"), ((math.nan, 0.5), ">= 0"), ((0.5, 0.2, 0.3), "2 flows")],
)
def test_a_scheduler_that_gives_wrong_shares_is_refused(
    per_slot: bool, values: tuple[float, ...], message: str
) -> None:
    band = by_hand(Fixed(values=values, per_slot=per_slot))
    for name in "ab":
        band.add(name, 1e6, slot=0, **STATIC)
    with pytest.raises(ValueError, match=message):
        band.next_end()


def test_a_scheduler_that_serves_nobody_is_refused() -> None:
    band = by_hand(Fixed(values=(0.0,)))
    band.add("a", 1.0, slot=0, **STATIC)
    with pytest.raises(ValueError, match="some flow a share"):
        band.next_end()
    # a flow without a share waits
    band = by_hand(Fixed(values=(0.0, 1.0)))
    band.add("a", 500.0, slot=0, **STATIC)
    band.add("b", 1000.0, slot=0, **STATIC)
    assert band.next_end() == (2, ["b"])
