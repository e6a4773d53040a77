"""Test that transfers with a changing SNR have the same results whether computed together or one by one."""

import itertools

import numpy as np
import pytest

from edgefl.channel.carrier import Carrier
from edgefl.channel.changing_flow import ChangingFlow, foresee
from edgefl.channel.fading import Fading, LinkFading
from edgefl.channel.interference import Heard, Interfered, TransmitterActivity
from edgefl.channel.modulation import Steps
from edgefl.channel.tdd import Pattern

FLOWS = 50
DOWNLINK, UPLINK = (Pattern().weights(direction) for direction in ("downlink", "uplink"))


def flows() -> list[ChangingFlow]:
    """Return flows that differ in TDD frame, rate steps, correlation of fading, and interference."""
    rng = np.random.default_rng(1)
    activity = TransmitterActivity(7, 8, 0.3)
    at_devices = Heard.each(activity, rng.exponential(size=(FLOWS, 8)))
    at_site = Heard(activity, [rng.exponential(size=size) for size in (3, 0, 1, 2, 5, 1, 1, 4)])
    carriers = [
        Carrier(1e6, 0.5e-3, weights=DOWNLINK, steps=Steps(), goodput=0.8),
        Carrier(1e6, 0.5e-3, weights=UPLINK, steps=Steps(smallest_part=0.0625)),
        Carrier(2e6, 0.5e-3, cap=7.4),
    ]
    made = []
    for number in range(FLOWS):
        correlation = [0.9667, 0.99, 0.72, 1.0][number % 4]
        fading: Fading = LinkFading(number, correlation, block=[400, 2048][number % 2])
        if number % 3:
            fading = Interfered(fading, [at_devices[number], at_site][number % 2])
        made.append(ChangingFlow(carriers[number % 5 % 3], fading, 2e5 + 4e4 * number, first_slot=100))
    return made


@pytest.mark.parametrize("boundaries", [(100, 400, 800, 1200, 1600, 2200, 2600), (100, 101, 2300, 6600)])
def test_flows_that_go_on_together_end_where_each_ends_alone(boundaries: tuple[int, ...]) -> None:
    together, alone = flows(), flows()
    left = list(range(FLOWS))
    ended = []
    for number, (slot, until) in enumerate(itertools.pairwise(boundaries)):
        snrs = [10 ** (0.5 + 0.02 * place + 0.1 * number) for place in left]
        foresee([together[place] for place in left], slot, snrs, until)
        ends = [together[place].end(slot, snr, until) for place, snr in zip(left, snrs, strict=True)]
        assert ends == [alone[place].end(slot, snr, until) for place, snr in zip(left, snrs, strict=True)]
        ended += [end for end in ends if end is not None]
        left = [place for place, end in zip(left, ends, strict=True) if end is None]
    assert len(ended) > 10, "some flows must end earlier"
    for place in left:
        for flow in (one := (together[place], alone[place])):
            flow.settle(until - 7)
        assert one[0].bits == one[1].bits > 0


def test_what_was_foreseen_holds_for_no_other_snr_slot_or_end() -> None:
    for slot, snr, until in ((400, 3.0, 800), (401, 2.0, 800), (400, 2.0, 799)):
        (foreseen, *others), (alone, *_) = flows(), flows()
        foresee([foreseen, *others], 400, [2.0] * FLOWS, 800)
        assert foreseen.end(slot, snr, until) == alone.end(slot, snr, until)
        for flow in (foreseen, alone):
            flow.settle(until)
        assert foreseen.bits == alone.bits > 0


def test_a_flow_that_is_cut_off_when_it_was_foreseen_has_what_it_had() -> None:
    cut, *others = flows()
    assert cut.end(100, 2.0, 400) is None
    cut.settle(400)
    before = cut.bits
    foresee([cut, *others], 400, [2.0] * FLOWS, 800)
    cut.settle(400)
    assert cut.bits == before > 0
