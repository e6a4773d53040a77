"""Test groups of flows with weighted shares of a band of 1 MHz with 0.5 ms slots and a cap of 1 bit/s/Hz.

Links are static and far above the cap, so a share b carries exactly 500 b bits per slot, under any scheduler.
"""

from typing import Any

import pytest

from edgefl.channel.band_slots import Groups
from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import LinkFading
from edgefl.channel.schedulers import Scheduler
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.max_rate import MaxRate
from edgefl.channel.schedulers.min_max_latency import MinMaxLatency
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.shared_band import SharedBand

UNIT_BITS = 500.0
STATIC: dict[str, Any] = {"snr_whole_band": 1e9, "fading": LinkFading(1, 1.0)}
ALL: list[Scheduler] = [EqualShare(), RoundRobin(), ProportionalFair(), MaxRate(), MinMaxLatency()]
NAMES = [type(scheduler).__name__ for scheduler in ALL]
SLOTS = 400
NEVER = 1e9  # so many bits that no flow ends
RELATIVE = 1e-9  # relative rounding error


def band_of(scheduler: Scheduler, weights: list[float], **rules: Any) -> SharedBand:
    """Return a band that groups flows by the first letter of their names: a, b, c."""
    groups = Groups(lambda id_: "abc".index(str(id_)[0]), weights)
    return SharedBand(scheduler, Carrier(1e6, 0.5e-3, cap=1.0, **rules), groups)


@pytest.mark.parametrize("power", ["full", "per_resource_block"])
@pytest.mark.parametrize("scheduler", ALL, ids=NAMES)
def test_throughput_of_busy_groups_goes_as_their_weights(scheduler: Scheduler, power: Any) -> None:
    band = band_of(scheduler, [1.0, 2.0, 5.0], power=power)
    for id_ in ("a1", "b1", "b2", "b3", "c1", "c2"):
        band.add(id_, NEVER, slot=0, **STATIC)
    band.settle(SLOTS)
    moved = {
        group: sum(band.moved_bits(id_) for id_ in ("a1", "b1", "b2", "b3", "c1", "c2") if id_[0] == group)
        for group in "abc"
    }
    assert moved == pytest.approx(
        {"a": SLOTS * UNIT_BITS / 8, "b": SLOTS * UNIT_BITS * 2 / 8, "c": SLOTS * UNIT_BITS * 5 / 8},
        rel=RELATIVE,
    )


@pytest.mark.parametrize("scheduler", ALL, ids=NAMES)
def test_a_group_alone_has_the_band_as_if_there_were_no_groups(scheduler: Scheduler) -> None:
    """Over fading links, a single group of any weight has the results of a band without groups, to the last bit."""
    alone = [band_of(scheduler, [0.01, 7.0]), SharedBand(scheduler, Carrier(1e6, 0.5e-3, cap=1.0))]
    for band in alone:
        for number, id_ in enumerate(("a1", "a2", "a3")):
            fading = LinkFading(number, 0.97)
            band.add(id_, 20_000 * (1 + number), snr_whole_band=3.0, fading=fading, slot=0)
    ends: list[list[Any]] = [[], []]
    for band, seen in zip(alone, ends, strict=True):
        while (following := band.next_end()) is not None:
            band.settle(following[0])
            seen.append(following)
    assert ends[0] == ends[1]


def test_what_a_group_leaves_goes_to_the_others() -> None:
    """a has 125 bits a slot and b 375 until b has moved its 15,000 bits in 40 slots; then a has 500."""
    band = band_of(EqualShare(), [1.0, 3.0])
    band.add("a", 10_000, slot=0, **STATIC)
    band.add("b", 15_000, slot=0, **STATIC)
    assert band.next_end() == (40, ["b"])
    assert band.settle(40) == ["b"]
    assert band.moved_bits("a") == pytest.approx(5_000, rel=RELATIVE)
    assert band.next_end() == (50, ["a"])


@pytest.mark.parametrize("scheduler", [EqualShare(), RoundRobin()], ids=["held", "by slot"])
def test_meters_of_groups_add_up_to_one_power(scheduler: Scheduler) -> None:
    """Groups divide the band's power in proportion to their weights; a group that is alone has all of it."""
    band = band_of(scheduler, [1.0, 3.0], power="per_resource_block")
    band.add("a", 10_000, slot=0, **STATIC)
    band.add("b", 15_000, slot=0, **STATIC)
    band.settle(40)
    assert [band.sent_slots_of(group) for group in (0, 1)] == pytest.approx([10.0, 30.0], rel=RELATIVE)
    band.settle(50)
    assert [band.sent_slots_of(group) for group in (0, 1)] == pytest.approx([20.0, 30.0], rel=RELATIVE)


def test_meters_of_groups_count_each_share_with_full_power() -> None:
    band = band_of(EqualShare(), [1.0, 3.0], power="full")
    for id_ in ("a1", "b1", "b2"):
        band.add(id_, NEVER, slot=0, **STATIC)
    band.settle(10)
    assert [band.sent_slots_of(group) for group in (0, 1)] == [10.0, 20.0]
    assert band.sent_slots == 30.0


def test_who_joins_a_group_is_as_far_behind_as_its_least_served() -> None:
    """In round robin a flow joins at the airtime of its own group's least served flow, not of other groups' flows."""
    band = band_of(RoundRobin(), [9.0, 1.0])
    band.add("a1", NEVER, slot=0, **STATIC)
    band.add("b", NEVER, slot=0, **STATIC)
    band.settle(100)
    band.add("a2", NEVER, slot=100, **STATIC)
    before = band.moved_bits("a1")
    band.settle(120)
    assert band.moved_bits("a1") - before == pytest.approx(10 * 0.9 * UNIT_BITS, rel=RELATIVE)
    assert band.moved_bits("a2") == pytest.approx(10 * 0.9 * UNIT_BITS, rel=RELATIVE)
