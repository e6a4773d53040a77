"""Test the flows of a band, whose values are stored in columns."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel.band_flows import BandFlow, BandFlows
from edgefl.channel.fading import LinkFading

NUMBERS = ("snr", "most", "need", "widest", "background", "static", "held_power")


def flow(number: int) -> BandFlow:
    one = BandFlow(number, 1.0, 2.0 + number, 3.0 + number, LinkFading(number, 0.9), bool(number % 2), 0.1)
    one.static_power = 0.5 * number if number % 3 == 0 else None
    return one


@settings(max_examples=40)
@given(st.lists(st.one_of(st.just("join"), st.just("change"), st.integers(0, 5)), max_size=12))
def test_columns_follow_flows_that_join_change_and_leave(steps: list[str | int]) -> None:
    """The columns equal the columns of a new tuple of the same flows, and each flow keeps its table row."""
    flows, row_of, number = BandFlows(), dict[int, int](), 0
    for step in steps:
        if step == "join":
            number += 1
            flows = flows.joined_by(flow(number))
        elif step == "change" and flows:
            flows[-1].snr, flows[-1].most = 7.0 + number, math.pi
            flows = flows.changed(len(flows) - 1)
            row_of.pop(int(str(flows[-1].id)), None)
        elif isinstance(step, int) and step < len(flows):
            flows = flows.without([step])
        rows = flows.rows.setdefault(0, np.full(len(flows), -1))
        ids = [int(str(one.id)) for one in flows]
        assert rows.tolist() == [row_of.get(id_, -1) for id_ in ids]
        for place, id_ in enumerate(ids):
            row_of[id_] = 100 + id_
            rows[place] = 100 + id_
        again = BandFlows(list(flows))
        for name in NUMBERS:
            np.testing.assert_array_equal(getattr(flows, name), getattr(again, name))
        np.testing.assert_array_equal(flows.snr_beside(2), again.snr_beside(2))
