"""Test that links that are read together have the same fading as links read one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel.diversity import DiverseFading
from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.many_links import draw_ahead, power_of_many

KEY = 2**100 + 12345
CORRELATIONS = [0.0, 0.9667, 0.99966, -0.9]


@settings(max_examples=40)
@given(
    correlations=st.lists(st.sampled_from(CORRELATIONS), min_size=1, max_size=20),
    first=st.integers(0, 3 * BLOCK),
    spread=st.sampled_from([0, 5, 2 * BLOCK]),
    count=st.one_of(st.integers(1, 80), st.sampled_from([BLOCK, 2 * BLOCK + 3])),
)
def test_many_links_read_together_are_each_alone(
    correlations: list[float], first: int, spread: int, count: int
) -> None:
    blocks = [BLOCK, 400]  # links with different block lengths are read together, as with two radios
    together, alone = (
        [LinkFading(KEY + i, rho, blocks[i % 2]) for i, rho in enumerate(correlations)] for _ in range(2)
    )
    first_slots = np.random.default_rng(first).integers(
        first, first + spread, len(correlations), endpoint=True
    )
    for at in (first_slots, first_slots + count):
        expected = [link.power(int(slot), count) for link, slot in zip(alone, at, strict=True)]
        np.testing.assert_array_equal(power_of_many(together, at, count), expected)
        # the values cached in the links are right, too
        again = [link.power(int(slot), count) for link, slot in zip(together, at, strict=True)]
        np.testing.assert_array_equal(again, expected)


def test_links_that_were_drawn_together_keep_only_their_own() -> None:
    links = [LinkFading(KEY + i, 0.9667) for i in range(20)]
    power_of_many(links, np.zeros(20, np.int64), 10)
    assert all(link._pages[0][0].base is None for link in links)


def test_what_was_drawn_ahead_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """After `draw_ahead`, reading five hundred links of different speeds, one of them static, draws nothing."""
    count, slot = 500, 7_123
    correlations = [*np.linspace(0.9, 0.9999, count - 1), 1.0]
    ahead, alone = ([LinkFading(KEY + i, rho, 400) for i, rho in enumerate(correlations)] for _ in range(2))
    draw_ahead(ahead, slot)
    monkeypatch.setattr(LinkFading, "_drawn", lambda *_: pytest.fail("drawn again"))
    read = [link.power(slot, 400 - slot % 400) for link in ahead[:-1]]
    monkeypatch.undo()
    expected = [link.power(slot, 400 - slot % 400) for link in alone[:-1]]
    np.testing.assert_array_equal(read, expected)
    assert ahead[-1].mean_power == alone[-1].mean_power


def test_links_of_several_kinds_and_static_ones_are_read_together() -> None:
    links = [
        LinkFading(KEY, 0.99),
        LinkFading(KEY + 1, 1.0),
        DiverseFading(KEY + 2, 0.99, 3),
        DiverseFading(KEY, 1.0, 3),
    ]
    first_slots = np.array([0, 3, BLOCK - 5, 10**6])
    expected = [link.power(int(slot), 20) for link, slot in zip(links, first_slots, strict=True)]
    np.testing.assert_array_equal(power_of_many(links, first_slots, 20), expected)
    assert (np.ptp(expected, axis=1) == 0.0).tolist() == [link.static for link in links]
