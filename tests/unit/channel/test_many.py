"""Test that transfers computed together have the same results as one by one, to the last bit."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel import many
from edgefl.channel.carrier import Carrier
from edgefl.channel.diversity import PAGE, DiverseFading
from edgefl.channel.fading import BLOCK, LinkFading, slot_correlation
from edgefl.channel.many import slots_of_many
from edgefl.channel.tdd import Pattern
from edgefl.channel.transfer import AUTO_COHERENCE_TIMES, AUTO_SLOTS, Flow
from tests.refusals import refused_at

KEY = 0x3A3A << 64
FAST = 0.9667
# at 3.5 GHz and 0.5 ms: FAST, a pedestrian, a speed with nearly uncorrelated slots, and a static link
SPEEDS_M_S = [10.0, 1.0, 65.0, 0.0]
FRAMES = [None, Pattern("DDDSU").weights("uplink"), Pattern("DDDSU").weights("downlink")]
BAND = Carrier(1e6, 0.5e-3)
UNIT_BITS = 500.0


def links(keys: Any, correlations: Any) -> list[LinkFading]:
    return [LinkFading(KEY + key, rho) for key, rho in zip(keys, correlations, strict=True)]


@st.composite
def transfers(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the arguments of `slots_of_many`, except for the links."""
    count = draw(st.integers(1, 12))

    def each(values: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    near_an_edge = st.builds(
        lambda block, beside: max(0, block * BLOCK + beside), st.integers(0, 3), st.integers(-40, 40)
    )
    together = draw(near_an_edge)
    return {
        # a key may occur twice, for two transfers over one link
        "keys": each(st.integers(0, 9)),
        "correlations": [
            slot_correlation(speed, carrier_hz=3.5e9, slot_s=0.5e-3)
            for speed in each(st.sampled_from(SPEEDS_M_S))
        ],
        "payload_bits": each(st.one_of(st.just(0.0), st.floats(1e-3, 1e5), st.floats(1e-3, 1e7))),
        "share": each(st.floats(0.3, 1.0)),
        "snr": [10 ** (db / 10) for db in each(st.floats(-20, 90))],
        "first_slot": each(st.one_of(st.just(together), near_an_edge)),
        "weights": draw(st.sampled_from(FRAMES)),
        "cap": draw(st.sampled_from([None, 2.0, 7.4])),
        "direction": draw(st.sampled_from(["downlink", "uplink"])),
        "fidelity": draw(st.sampled_from(["slot", "renewal", "auto"])),
    }


@settings(max_examples=40)
@given(story=transfers(), chunk=st.sampled_from([100, 5000, 2**20]))
def test_together_is_one_by_one(story: dict[str, Any], chunk: int) -> None:
    carrier = Carrier(1e6, 0.5e-3, story.pop("weights"), story.pop("cap"))
    keys, correlations = story.pop("keys"), story.pop("correlations")
    # the same key with a different correlation is a different link
    alone, shared = (
        {pair: LinkFading(KEY + pair[0], pair[1]) for pair in zip(keys, correlations, strict=True)}
        for _ in range(2)
    )
    pairs = list(zip(keys, correlations, strict=True))
    expected = [
        Flow(
            carrier.part(story["share"][i]),
            story["snr"][i],
            alone[pair],
            story["first_slot"][i],
            story["direction"],
            story["fidelity"],
        ).slots(story["payload_bits"][i])
        for i, pair in enumerate(pairs)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(many, "_LARGEST_CHUNK", chunk)
        found = slots_of_many(carrier, fading=[shared[pair] for pair in pairs], **story)
    assert found.tolist() == expected


def test_auto_draws_the_same_ones_by_renewal() -> None:
    # transfers on both sides of the limits of `auto` in slots and in coherence times
    rate = float(BAND.mean_efficiency(10.0))
    slow = 0.999
    bits = [
        slots * factor * rate * UNIT_BITS
        for slots in (AUTO_SLOTS, AUTO_COHERENCE_TIMES / (1 - slow))
        for factor in (0.5, 1 - 1e-14, 1.0, 1 + 1e-14, 1.5)
    ]
    correlations = [FAST] * 5 + [slow] * 5
    how: dict[str, Any] = {"share": 1.0, "snr": 10.0, "first_slot": 7}
    found = slots_of_many(BAND, bits, fading=links(range(10), correlations), **how)
    flows = [Flow(BAND, 10.0, link, 7) for link in links(range(10), correlations)]
    assert found.tolist() == [flow.slots(z) for flow, z in zip(flows, bits, strict=True)]
    assert {flow.by_renewal(z) for flow, z in zip(flows, bits, strict=True)} == {True, False}


def test_one_value_may_serve_all() -> None:
    found = slots_of_many(
        BAND, 1e5, share=0.5, snr=100.0, fading=links(range(3), [FAST] * 3), first_slot=2000
    )
    expected = [Flow(BAND.part(0.5), 100.0, link, 2000).slots(1e5) for link in links(range(3), [FAST] * 3)]
    assert found.tolist() == expected
    assert slots_of_many(BAND, [], share=[], snr=[], fading=[], first_slot=[]).shape == (0,)


def test_a_transfer_that_only_fades_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "MAX_SLOTS", 50)
    how: dict[str, Any] = {"share": 1.0, "snr": 1.0, "fading": links([1], [FAST]), "first_slot": 0}
    # a slot carries some 0.86 bits/s/Hz on average, and at most 1 bit/s/Hz by Jensen's inequality
    with refused_at("", "50 slots", kind=ValueError):
        slots_of_many(BAND, 49 * UNIT_BITS, fidelity="slot", **how)


@pytest.mark.parametrize("weights", FRAMES)
def test_only_pages_of_a_transfer_are_drawn(weights: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links of a wide band have short pages, which are drawn only up to the page in which the transfer ends."""
    drawn: set[tuple[int, int]] = set()
    draws = DiverseFading._drawn

    def seen(level: int, places: Any) -> Any:
        drawn.update((link.key, index) for link, index in places if level == 0)
        return draws(level, places)

    carrier = Carrier(1e6, 0.5e-3, weights, taps=3)
    rho = slot_correlation(10.0, carrier_hz=3.5e9, slot_s=0.5e-3)
    bits, snr, first = [10.0, 1e4, 5e5, 3e6, 0.0], [100.0, 1.0, 3.0, 30.0, 1.0], [PAGE - 1, 700, 5, 0, 9]

    def links_of() -> list[DiverseFading]:
        return [DiverseFading(KEY + place, rho, 3) for place in range(len(bits))]

    each = zip(links_of(), bits, snr, first, strict=True)
    expected = [Flow(carrier, s, link, n, fidelity="slot").slots(z) for link, z, s, n in each]
    monkeypatch.setattr(DiverseFading, "_drawn", staticmethod(seen))
    slots = slots_of_many(
        carrier, bits, share=1.0, snr=snr, fading=links_of(), first_slot=first, fidelity="slot"
    )
    assert slots.tolist() == expected
    assert max(expected) > 4 * PAGE
    needed = {
        (KEY + place, page)
        for place, (begin, count) in enumerate(zip(first, expected, strict=True))
        for page in range(begin // PAGE, -(-(begin + count) // PAGE))
        if count
    }
    assert drawn == needed
