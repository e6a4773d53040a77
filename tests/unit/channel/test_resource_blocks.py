"""Test the number of a band's resource blocks, their division among flows, and a flow's rate on them."""

import numpy as np
import pytest

from edgefl.channel.modulation import Steps
from edgefl.channel.resource_blocks import (
    BlockLink,
    blocks_of,
    carried,
    divide,
    in_order,
    quotas,
    rounded,
    usable,
)

RNG = np.random.default_rng(5)


@pytest.mark.parametrize(
    ("mhz", "slot_ms", "blocks"),
    [
        (5, 1.0, 25),
        (20, 1.0, 106),
        (5, 0.5, 11),
        (20, 0.5, 51),
        (40, 0.5, 106),
        (100, 0.5, 273),
        (100, 0.25, 135),
    ],
)
def test_carriers_have_the_blocks_of_38_101_1(mhz: float, slot_ms: float, blocks: int) -> None:
    assert blocks_of(mhz * 1e6, slot_ms * 1e-3) == blocks


def test_bandwidths_beside_the_table() -> None:
    assert blocks_of(55e6, 0.5e-3) == (133 + 162) // 2
    assert blocks_of(2e6, 0.5e-3) == int(0.95 * 2e6 / 360e3)
    assert blocks_of(150e6, 0.5e-3) == int(0.95 * 150e6 / 360e3)
    assert blocks_of(1e5, 0.5e-3) == 1


@pytest.mark.parametrize("slot_ms", [1.0, 0.5, 0.25, 0.125])
def test_a_wider_band_never_has_fewer_blocks(slot_ms: float) -> None:
    """No band has more blocks than fit into it, and a step of 0.1 MHz adds at most the blocks of 0.2 MHz."""
    widths_mhz = np.arange(0.4, 130.0, 0.1).round(1)
    blocks = np.array([blocks_of(mhz * 1e6, slot_ms * 1e-3) for mhz in widths_mhz.tolist()])
    block_mhz = 0.18 / slot_ms
    assert (np.diff(blocks) >= 0).all()
    assert (np.diff(blocks) <= np.ceil(0.2 / block_mhz)).all()
    assert (blocks <= np.maximum(1, widths_mhz / block_mhz)).all()


@pytest.mark.parametrize("parts", [1, 11])
@pytest.mark.parametrize("layers", [1, 2, 4])
@pytest.mark.parametrize("most_blocks", [3, 20, 273])
def test_a_flow_uses_the_number_of_blocks_that_carries_most(
    layers: int, most_blocks: int, parts: int
) -> None:
    """The flow uses the best number of blocks, with its power spread over them and limited by power control."""
    steps, shape = Steps(layers=layers, parts=parts), (30, 60)
    given = RNG.integers(0, most_blocks + 1, shape)
    alone, most = 10 ** RNG.uniform(-1, 6, shape), 10 ** RNG.uniform(-1, 5, shape)
    most[::3] = np.inf
    rates, used = carried(BlockLink(alone, most), given, steps)
    numbers = np.arange(1, most_blocks + 1)[:, None, None]
    each = np.where(numbers <= given, numbers * steps.efficiency(np.minimum(alone / numbers, most)), 0.0)
    np.testing.assert_allclose(rates, each.max(axis=0), rtol=1e-12)
    on_used = used * steps.efficiency(np.minimum(alone / np.maximum(used, 1), most) * (1 + 1e-12))
    np.testing.assert_allclose(rates, on_used, rtol=1e-12)
    assert (used <= given).all()


def test_a_site_carries_the_same_on_every_block() -> None:
    steps, most = Steps(layers=2), 10 ** RNG.uniform(-1, 4, (5, 9))
    given = RNG.integers(0, 274, most.shape)
    rates, used = carried(BlockLink(None, most), given, steps)
    np.testing.assert_array_equal(rates, given * steps.efficiency(most))
    np.testing.assert_array_equal(used, given)
    np.testing.assert_array_equal(
        usable(BlockLink(None, most), steps, 273), np.where(most < steps.lowest_snr, 0, 273)
    )


def test_blocks_are_usable_down_to_the_lowest_rate() -> None:
    """A flow with twice the lowest usable SNR on one block uses 2 blocks; a flow below the lowest SNR uses none."""
    steps = Steps()
    alone = np.array([[2.0], [0.99], [1e9], [2.0]]) * steps.lowest_snr * (1 + 1e-9)
    most = np.array([[np.inf], [np.inf], [np.inf], [0.5 * steps.lowest_snr]])
    assert usable(BlockLink(alone, most), steps, 273)[:, 0].tolist() == [2, 0, 273, 0]


@pytest.mark.parametrize("case", range(40))
def test_every_block_goes_to_a_flow_that_can_use_it_and_equally(case: int) -> None:
    rng = np.random.default_rng(case)
    flows, blocks, slots = int(rng.integers(1, 40)), int(rng.integers(1, 274)), 25
    most = np.where(rng.random((flows, slots)) < 0.3, rng.integers(0, 12, (flows, slots)), blocks)
    given = divide(most, blocks, blocks * np.arange(slots))
    assert (given <= most).all()
    np.testing.assert_array_equal(given.sum(axis=0), np.minimum(blocks, most.sum(axis=0)))
    for slot in range(slots):
        more = most[:, slot] > given[:, slot]
        if more.any():  # flows that could use another block have equally many blocks, up to the remainder
            assert given[:, slot].max() - given[more, slot].min() <= 1


@pytest.mark.parametrize(("flows", "blocks"), [(30, 273), (7, 3), (400, 273)])
def test_the_remainder_goes_round(flows: int, blocks: int) -> None:
    """Over as many slots as there are flows, all flows get equally many blocks."""
    given = divide(np.full((flows, flows), blocks), blocks, blocks * (11 + np.arange(flows)))
    assert (given.sum(axis=1) == blocks).all()


@pytest.mark.parametrize("weights", [(1, 1), (3, 2), (1, 1, 1, 1), (5, 1, 1), (1,)])
def test_groups_get_whole_blocks_that_are_their_parts_on_average(weights: tuple[int, ...]) -> None:
    parts, blocks, slots = np.array(weights) / sum(weights), 11, 500
    given, earlier = quotas(parts, blocks, 7 + np.arange(slots))
    assert (given >= 0).all()
    assert (given.sum(axis=0) == blocks).all()
    assert (np.abs(given.sum(axis=1) - parts * blocks * slots) < 2).all()
    np.testing.assert_array_equal(earlier[:, 1:] - earlier[:, :-1], given[:, :-1])


def test_shares_become_whole_blocks() -> None:
    assert rounded(np.array([0.5, 0.3, 0.2]), 7).tolist() == [4, 2, 1]  # 3.5, 2.1, 1.4
    assert rounded(np.array([0.25, 0.25]), 4).tolist() == [1, 1]
    assert rounded(np.full(3, 1 / 3), 273).tolist() == [91, 91, 91]


def test_blocks_in_order_until_none_is_left() -> None:
    assert in_order([2, 0, 1], np.array([4, 5, 6]), 9).tolist() == [3, 0, 6]
