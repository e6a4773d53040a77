"""Test a band shared by resource blocks slot by slot: properties of all schedulers, and a hand-computed transfer."""

from typing import Any

import numpy as np
import pytest

from edgefl.channel import block_slots
from edgefl.channel.band_slots import Groups
from edgefl.channel.carrier import Carrier
from edgefl.channel.fading import LinkFading
from edgefl.channel.modulation import Steps
from edgefl.channel.resource_blocks import BlockLink, usable
from edgefl.channel.schedulers import Scheduler
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.schedulers.learning_first import LearningFirst
from edgefl.channel.schedulers.max_rate import MaxRate
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.schedulers.round_robin import RoundRobin
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Pattern

BLOCKS, HZ, SLOT_S = 24, 10e6, 0.5e-3
UPLINK = Pattern("DDDSU", "10:2:2").weights("uplink")
STEPS = Steps(smallest_part=1 / BLOCKS)
ALL: list[Scheduler] = [EqualShare(), RoundRobin(), ProportionalFair(), MaxRate(), LearningFirst()]
NAMES = [type(scheduler).__name__ for scheduler in ALL]
# SNR on the whole band with full power, and the highest SNR that power control allows on a block
LINKS = [(0.02, np.inf), (0.3, 4.0), (2.0, 30.0), (50.0, 30.0), (300.0, 30.0)]


def band_of(scheduler: Scheduler, power: str = "full", **options: Any) -> SharedBand:
    carrier = Carrier(
        HZ,
        SLOT_S,
        UPLINK,
        power=power,
        steps=STEPS,
        blocks=BLOCKS,  # type: ignore[arg-type]
    )
    return SharedBand(scheduler, carrier, **options)


def fill(band: SharedBand, bits: float = 40_000.0, least_snr: float = 0.0) -> None:
    for id_, (snr, most) in enumerate(LINKS):
        fading, snr = LinkFading(17 + id_, 0.9), max(snr, least_snr)
        band.add(id_, bits * (1 + id_), snr_whole_band=snr, most_snr=most, fading=fading, slot=0)


class Given:
    """A recorder of calls of `carried`: for each served slot, the link, the blocks given, and the blocks used."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.slots: list[tuple[BlockLink, np.ndarray, np.ndarray]] = []
        carried = block_slots.carried

        def seen(link: BlockLink, given: np.ndarray, *rest: Any) -> tuple[np.ndarray, np.ndarray]:
            rates, used = carried(link, given, *rest)
            self.slots.append((link, given, used))
            return rates, used

        monkeypatch.setattr(block_slots, "carried", seen)


def ends_of(band: SharedBand, looks: int | None = None) -> dict[Any, int]:
    ends: dict[Any, int] = {}
    while (due := band.next_end(None if looks is None else band.slot + looks)) is not None:
        ends |= dict.fromkeys(band.settle(due[0]), due[0])
    return ends


@pytest.mark.parametrize("power", ["full", "per_resource_block"])
@pytest.mark.parametrize("scheduler", [EqualShare(), *ALL[1:]], ids=NAMES)
def test_no_block_is_left_while_a_flow_could_use_it(
    scheduler: Scheduler, power: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In each slot, either all blocks are given out, or each flow has as many blocks as it can use."""
    given = Given(monkeypatch)
    band = band_of(scheduler, power)
    fill(band, least_snr=0.3 if power == "per_resource_block" else 0.0)  # sites cannot concentrate power
    while (due := band.next_end()) is not None:
        band.settle(due[0])
    slots = 0
    for link, blocks, _ in given.slots:
        if (blocks == BLOCKS).all():
            continue  # this call computes the rate of each flow alone
        most = usable(link, STEPS.whole, BLOCKS)
        assert blocks.dtype.kind == "i"
        assert (blocks <= most).all()
        served = blocks.any(axis=0)
        whole = np.minimum(most.sum(axis=0), BLOCKS)
        np.testing.assert_array_equal(blocks.sum(axis=0)[served], whole[served])
        slots += int(served.sum())
    assert slots > 50


@pytest.mark.parametrize("scheduler", [RoundRobin(), ProportionalFair(), MaxRate()], ids=NAMES[1:4])
def test_flows_at_the_highest_rate_take_turns(scheduler: Scheduler) -> None:
    """At the highest rate channels are equal, so three flows of equal bits end within three periods of each other."""
    band, link = band_of(scheduler, "per_resource_block"), LinkFading(1, 1.0)
    for id_ in range(3):
        band.add(id_, 1e6, snr_whole_band=1e6, fading=link, slot=0)
    ends = ends_of(band)
    assert max(ends.values()) - min(ends.values()) <= 3 * len(UPLINK)


@pytest.mark.parametrize("scheduler", ALL, ids=NAMES)
def test_looking_ahead_changes_nothing(scheduler: Scheduler) -> None:
    """Ends, airtimes and powers do not depend, to the last bit, on how often the band looks ahead."""
    seen = []
    for looks in (None, 7, 25, 133):
        band = band_of(scheduler)
        fill(band)
        ends = ends_of(band, looks)
        seen.append((ends, [band.sent_by(id_) for id_ in range(len(LINKS))], band.sent_slots))
    assert seen[1:] == seen[:1] * 3
    assert len(set(seen[0][0].values())) > 1


def test_a_transfer_by_hand() -> None:
    """With 12 of 24 blocks each, one static uplink is limited by power control, and the other by its amplifier."""
    link = LinkFading(1, 1.0)
    h2 = float(link.power(0, 1)[0])
    table = Steps()
    strong, most = 100.0, 10.0  # SNR on the whole band, and highest SNR on a block
    weak = 0.5
    band = band_of(EqualShare())
    bits = 200_000.0
    band.add("strong", bits, snr_whole_band=strong / h2, most_snr=most / h2, fading=link, slot=0)
    band.add("weak", bits, snr_whole_band=weak / h2, fading=link, slot=0)
    # with 12 blocks, 100 x 24 / 12 = 200 exceeds 10, so power control limits the power to its share 10 x 12 / 2,400
    rate = 12 * float(table.efficiency(most)) / BLOCKS
    best = max(m * float(table.efficiency(weak * BLOCKS / m)) for m in range(1, 13)) / BLOCKS
    assert best > 12 * float(table.efficiency(weak * BLOCKS / 12)) / BLOCKS  # best on fewer than 12 blocks
    unit = HZ * SLOT_S
    periods = bits / (rate * unit) / (16 / 14)  # a period of five slots has 1 + 2/14 uplink slots
    due = band.next_end()
    assert due is not None
    assert due[1] == ["strong"]
    assert due[0] == pytest.approx(5 * periods, abs=5)
    band.settle(due[0])
    assert band.moved_bits("weak") == pytest.approx(bits * best / rate, rel=0.02)
    on, at_power = band.sent_by("strong")
    assert on == pytest.approx(due[0] / 5 * 16 / 14, abs=1.2)
    assert at_power / on == pytest.approx(most * 12 / (strong * BLOCKS), rel=1e-9)


def test_no_power_is_above_the_amplifiers() -> None:
    band = band_of(EqualShare())
    fill(band)
    ends_of(band)
    for id_, (snr, most) in enumerate(LINKS):
        on, at_power = band.sent_by(id_)
        assert 0 < at_power <= on
        if most > snr * BLOCKS:  # power control does not limit this flow even on one block
            assert at_power == pytest.approx(on)


def test_several_weak_flows_share_a_slot_and_a_strong_one_takes_it_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A weak flow reaches its power-control target on 6 blocks, so four fill 24 blocks; one strong flow fills 24."""
    for snr, flows, each in ((1.0, 4, [6, 6, 6, 6]), (40.0, 2, [24, 0])):
        given = Given(monkeypatch)
        band = band_of(RoundRobin())
        for id_ in range(flows):
            band.add(id_, 1e5, snr_whole_band=snr, most_snr=4.0, fading=LinkFading(id_, 1.0 - 1e-9), slot=0)
        band.next_end(band.slot + 5)
        monkeypatch.undo()
        first = next(
            blocks for link, blocks, _ in given.slots if blocks.shape[1] == 1 and (blocks != BLOCKS).any()
        )
        assert first[:, 0].tolist() == each


@pytest.mark.parametrize("scheduler", ALL, ids=NAMES)
def test_a_narrow_radio_has_no_more_blocks_than_it_takes(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A radio that can use only a quarter of the band gets 6 of 24 blocks, and the other flow gets the rest."""
    given = Given(monkeypatch)
    band, link = band_of(scheduler, "per_resource_block"), LinkFading(1, 1.0)
    for id_, widest in enumerate((0.25, 1.0)):
        band.add(id_, 1e8, snr_whole_band=1e6, widest=widest, fading=link, slot=0)
    band.next_end(band.slot + 25)
    _, blocks, _ = given.slots[-1]
    assert (blocks[0] <= 6).all()
    assert (blocks.sum(axis=0) == BLOCKS).all()


@pytest.mark.parametrize("scheduler", [EqualShare(), RoundRobin()], ids=lambda one: type(one).__name__)
def test_groups_have_their_part_of_the_blocks_on_average(scheduler: Scheduler) -> None:
    """With weights 3:2, groups get 14.4 and 9.6 of 24 blocks on average, and their flows half each."""
    groups = Groups(lambda id_: int(str(id_)) // 2, [3.0, 2.0])
    band, slots = band_of(scheduler, "per_resource_block", groups=groups), 1000
    for id_ in range(4):
        band.add(id_, 1e9, snr_whole_band=1e9, fading=LinkFading(1, 1.0), slot=0)
    band.settle(slots)
    moved = np.array([band.moved_bits(id_) for id_ in range(4)])
    parts = moved / moved.sum()
    assert parts == pytest.approx([0.3, 0.3, 0.2, 0.2], abs=2 / slots)


def test_groups_have_their_blocks_and_what_another_cannot_use() -> None:
    """With weights 1:3, the groups get 6 and 18 of 24 blocks; a group that is alone gets all 24 blocks."""
    groups = Groups(lambda id_: int(str(id_)), [1.0, 3.0])
    band = band_of(EqualShare(), "per_resource_block", groups=groups)
    link = LinkFading(1, 1.0)
    for id_ in (0, 1):
        band.add(id_, 1e6, snr_whole_band=1e9, fading=link, slot=0)
    band.settle(100)
    assert band.moved_bits(1) / band.moved_bits(0) == pytest.approx(3.0)
    assert band.sent_slots_of(1) / band.sent_slots_of(0) == pytest.approx(3.0)
