"""Test that flows with equal shares of a band of blocks have the same results in one pass as event by event."""

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edgefl.channel import block_sweep
from edgefl.channel.carrier import Carrier
from edgefl.channel.diversity import fading_in_parts
from edgefl.channel.modulation import Steps
from edgefl.channel.resource_blocks import divide
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.shared_band import SharedBand
from edgefl.channel.tdd import Pattern

FRAMES = [None, *(Pattern(letters).weights("uplink") for letters in ("DDDSU", "DSUUD"))]
Powers = Literal["full", "per_resource_block"]


def story_of(
    rng: np.random.Generator, flows: int, spread: int, bits: float
) -> list[tuple[int, dict[str, Any]]]:
    """Return flows that join over time, some of them together, with different links and payloads."""
    slots = np.sort(rng.integers(0, spread + 1, flows) + 700).tolist()
    return [
        (
            slot,
            {
                "id_": id_,
                "payload_bits": float(bits * 10 ** rng.uniform(-2, 0.5)),
                "snr_whole_band": float(10 ** rng.uniform(-1, 2)),
                "most_snr": float(rng.choice([np.inf, 0.5, 4.0, 30.0])),
                "widest": float(rng.choice([1.0, 1.0, 0.3])),
                "fading": fading_in_parts(1 + id_, float(rng.choice([0.9, 0.999])), 3),
            },
        )
        for id_, slot in enumerate(slots)
    ]


def event_by_event(band: SharedBand, story: list[tuple[int, dict[str, Any]]]) -> list[tuple[int, list[Any]]]:
    steps: list[tuple[int, list[Any]]] = []
    joins: list[tuple[int, dict[str, Any] | None]] = [*story, (2**40, None)]
    for slot, flow in joins:
        while (due := band.next_end(band.horizon)) is not None and due[0] <= slot:
            steps.append((due[0], band.settle(due[0])))
        if flow is not None:
            band.settle(slot)
            band.add(**flow, slot=slot)
    return steps


@given(
    seed=st.integers(0, 2**32 - 1),
    flows=st.integers(1, 40),
    spread=st.sampled_from([0, 30, 400, 2_000]),
    blocks=st.sampled_from([7, 51, 273]),
    frame=st.sampled_from(FRAMES),
    power=st.sampled_from(["full", "per_resource_block"]),
    steps=st.sampled_from([None, Steps(), Steps(layers=2, parts=3)]),
    at_once=st.sampled_from([(1, 1), (300, 5), (2048, 16), (10**6, 16)]),
)
@example(3, 60, 400, 273, FRAMES[1], "full", Steps(layers=2, parts=3), (2048, 16))
@settings(max_examples=10)
def test_one_pass_is_what_the_events_make(
    seed: int,
    flows: int,
    spread: int,
    blocks: int,
    frame: Any,
    power: Powers,
    steps: Steps | None,
    at_once: tuple[int, int],
) -> None:
    """Wake-ups, ends, airtime, slots and power are equal to the last bit, wherever the pass is split."""
    story = story_of(np.random.default_rng(seed), flows, spread, 2e5)
    carrier = Carrier(20e6, 0.5e-3, frame, power=power, steps=steps, blocks=blocks, taps=3)
    one, many = SharedBand(EqualShare(), carrier), SharedBand(EqualShare(), carrier)
    steps_of_one = event_by_event(one, story)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(block_sweep, "_AT_ONCE", at_once)
        expected = [(slot, many.add(**flow, slot=slot, expected=True)) for slot, flow in story]
        assert list(many.planned(expected)) == steps_of_one
    assert sum(len(ids) for _, ids in steps_of_one) == flows
    assert repr(many.sent_slots) == repr(one.sent_slots)
    assert [many.sent_by(id_) for id_ in range(flows)] == [one.sent_by(id_) for id_ in range(flows)]
    assert (many.slot, len(many)) == (one.slot, 0)


@pytest.mark.parametrize("joins", [767, 768, 890, 896, 897, 1024])
def test_a_flow_that_joins_shortens_the_next_look(joins: int) -> None:
    """If a second long transfer joins during the first, the wake-ups still equal the wake-ups event by event."""
    carrier = Carrier(20e6, 0.5e-3, FRAMES[1], steps=Steps(), blocks=51)
    story = [
        (
            slot,
            {
                "id_": slot,
                "payload_bits": 4e6,
                "snr_whole_band": 20.0,
                "fading": fading_in_parts(slot, 0.9, 3),
            },
        )
        for slot in (700, joins)
    ]
    one, many = SharedBand(EqualShare(), carrier), SharedBand(EqualShare(), carrier)
    expected = [(slot, many.add(**flow, slot=slot, expected=True)) for slot, flow in story]
    steps = list(many.planned(expected))
    assert steps == event_by_event(one, story)
    assert steps[-1][0] > 1200  # the first flow takes more than one step of planning
    assert repr(many.sent_slots) == repr(one.sent_slots)


@pytest.mark.parametrize("case", range(20))
def test_blocks_are_divided_among_the_flows_that_are_there(case: int) -> None:
    """In each slot, only the flows present share the blocks, as in a computation of this slot alone."""
    rng = np.random.default_rng(case)
    flows, blocks, slots = int(rng.integers(2, 40)), int(rng.integers(1, 274)), 12
    few = rng.random((flows, slots)) < 0.3 * (case % 2)
    most = np.where(few, rng.integers(0, 12, (flows, slots)), blocks)
    earlier, there = blocks * (5 + np.arange(slots)), rng.random((flows, slots)) < rng.random(slots)
    shares = divide(most, blocks, earlier, there)
    for slot, present in enumerate(there.T):
        now = slice(slot, slot + 1)
        if present.any():
            assert np.array_equal(shares[present, now], divide(most[present, now], blocks, earlier[now]))
        assert not shares[~present, now].any()
