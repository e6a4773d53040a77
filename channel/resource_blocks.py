"""Count a band's resource blocks, divide a slot's blocks among flows, and compute each flow's rate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from edgefl.channel.modulation import Steps
from edgefl.channel.units import FloatArray

IntArray = npt.NDArray[np.int64]
Rows = npt.NDArray[np.intp]

SUBCARRIERS = 12  # of a resource block: 3GPP TS 38.211, 4.4.4.1
BLOCK_ELEMENTS = SUBCARRIERS * 14  # symbols that a block carries in a slot
# Subcarrier spacing in kHz -> resource blocks of a carrier by its bandwidth in MHz: 3GPP TS 38.101-1, Table 5.3.2-1
_BLOCKS = {
    15: {5: 25, 10: 52, 15: 79, 20: 106, 25: 133, 30: 160, 35: 188, 40: 216, 45: 242, 50: 270},
    30: {5: 11, 10: 24, 15: 38, 20: 51, 25: 65, 30: 78, 35: 92, 40: 106, 45: 119}
    | {50: 133, 60: 162, 70: 189, 80: 217, 90: 245, 100: 273},
    60: {10: 11, 15: 18, 20: 24, 25: 31, 30: 38, 35: 44, 40: 51, 45: 58, 50: 65}
    | {60: 79, 70: 93, 80: 107, 90: 121, 100: 135},
}
# Number of steps above the step reached on all blocks that are tried on fewer blocks: with one layer, with several
_STEPS_MORE = (2, 3)
_BETWEEN = 0.95  # share of the spectrum that blocks occupy in a band without a row in the table


def blocks_of(bandwidth_hz: float, slot_s: float) -> int:
    """Return a carrier's number of resource blocks, of 15 kHz subcarriers in 1 ms slots or 30 kHz in 0.5 ms.

    A band or spacing that the standard does not list has as many blocks as fit into 95 % of the band, at least one.

    Source: 3GPP TS 38.101-1, Table 5.3.2-1.
    """
    spacing_khz = 15e-3 / slot_s
    listed = _BLOCKS.get(round(spacing_khz), {}) if spacing_khz == round(spacing_khz) else {}
    blocks = listed.get(round(bandwidth_hz / 1e6)) if bandwidth_hz % 1e6 == 0 else None
    return blocks or max(1, int(_BETWEEN * bandwidth_hz / (SUBCARRIERS * 1e3 * spacing_khz)))


@dataclass(frozen=True)
class BlockLink:
    """The SNR of n flows on resource blocks in s slots, [n, s] each.

    A flow on M blocks has the SNR min(alone / M, most): its amplifier's power spread over M blocks, but no more on a
    block than power control allows.

    alone: the SNR with all of the flow's power on one block, or None for a transmitter with the same power on every
    block. most: the SNR with the power that power control allows on a block. step: how many of the table's rates the
    flow reaches on one block, if known.
    """

    alone: FloatArray | None
    most: FloatArray
    step: IntArray | None = None

    def at(self, slots: slice) -> "BlockLink":
        """Return the flows' SNR and steps in the given slots."""
        alone = None if self.alone is None else self.alone[:, slots]
        return BlockLink(alone, self.most[:, slots], None if self.step is None else self.step[:, slots])

    def steps_of(self, steps: Steps) -> IntArray:
        """Return [n, s] how many of a table's rates each flow reaches on one block in each slot."""
        if self.step is not None:
            return self.step
        on_one = self.most if self.alone is None else np.minimum(self.most, self.alone)
        return steps.needs.searchsorted(on_one, side="right")


def usable(link: BlockLink, steps: Steps | None, blocks: int) -> IntArray:
    """Return [n, s] the largest number of blocks on which each flow carries bits in a slot, 0 to `blocks`.

    Args:
        steps: table of rates; with Shannon's rates, all blocks are usable.
    """
    if steps is None:
        return np.full(link.most.shape, blocks, dtype=np.int64)
    lowest = steps.lowest_snr
    if link.alone is None:
        return (link.most >= lowest) * np.int64(blocks)
    reached = np.minimum(link.alone / lowest, blocks).astype(np.int64)
    reached[link.most < lowest] = 0
    return reached


def carried(
    link: BlockLink, given: IntArray, steps: Steps | None, cap: float | None = None
) -> tuple[FloatArray, IntArray]:
    """Return each flow's rate on the blocks given to it, and the number of blocks that it uses.

    A flow that is limited by its power uses fewer blocks than it was given if fewer carry more bits.

    Args:
        given: [n, s] blocks given to each flow in each slot.
        cap: with Shannon's rates, the highest rate on a block in bit/s/Hz, or None for no limit.

    Returns:
        [n, s] rate of each flow, in bit/s/Hz times blocks; [n, s] blocks in use.
    """
    if steps is None:
        snr = link.most
        if link.alone is not None:
            snr = np.minimum(link.alone / np.maximum(given, 1), link.most)
        rate = np.log1p(snr) / np.log(2.0)
        return given * (rate if cap is None else np.minimum(rate, cap)), given
    step = link.steps_of(steps)
    # rates of flows that power control limits, which have the same SNR on fewer blocks
    rates = given * steps.rates.take(step)
    if link.alone is None:
        return rates, given
    # with 0 blocks, `given * link.most` is 0 times infinity without power control, and `alone / given` divides by 0
    with np.errstate(invalid="ignore", divide="ignore"):
        limited = given * link.most > link.alone
        if not limited.any():
            return rates, np.where(rates > 0, given, 0)
        best, least = _limited(link.alone, step, given, steps)
    rates = np.where(limited, best, rates)
    return rates, np.where(rates > 0, np.where(limited, least, given), 0)


def _limited(alone: FloatArray, step: IntArray, given: IntArray, steps: Steps) -> tuple[FloatArray, IntArray]:
    """Return the highest rate times blocks [n, s] of flows limited by their power, and the blocks that carry it.

    With its power on all its blocks, a flow reaches some step of the table. To reach a higher step, the flow uses
    only the blocks that its power can raise to that step's SNR. The rate per power falls from step to step, so a
    higher step carries more only because of rounding to whole blocks, or with several layers.
    """
    more, needs, table = _padded(steps)
    highest = np.minimum(steps.needs.searchsorted(alone / given, side="right") + more, step)
    tried = highest + np.arange(more + 1)[:, None, None]
    blocks = np.minimum(given, alone / needs.take(tried)).astype(np.int64)
    carries = table.take(tried) * blocks
    best = np.maximum.reduce(carries, axis=0)
    # of several steps that carry equally much, take the one with the fewest blocks
    return best, np.minimum.reduce(np.where(carries == best, blocks, given), axis=0)


@lru_cache(maxsize=64)
def _padded(steps: Steps) -> tuple[int, FloatArray, FloatArray]:
    """Return how many steps are tried above the one reached on all blocks, and SNRs and rates of all steps.

    The result begins with as many padding steps as are tried, which have an infinite SNR and the rate 0.
    """
    more = _STEPS_MORE[steps.layers > 1]
    none = np.zeros(more)
    return more, np.concatenate([none + np.inf, [np.inf], steps.needs]), np.concatenate([none, steps.rates])


def divide(
    most: IntArray, blocks: int | IntArray, turn: IntArray, there: npt.NDArray[np.bool_] | None = None
) -> IntArray:
    """Divide each slot's blocks equally among flows; blocks that one flow cannot use go to other flows.

    The remainder of the division goes to the flows in turn, one block each; the next slot continues the turn.

    Args:
        most: [n, s] how many blocks each flow can use in each slot.
        blocks: how many blocks to divide: one number for all slots, or [s].
        turn: [s] number of each slot, counting the slots that serve this direction.
        there: [n, s] whether a flow takes part in a slot; by default, all do.

    Returns:
        [n, s] blocks of each flow, in sum all blocks, or as many as the flows can use if these are fewer.
    """
    flows: int | IntArray = len(most)
    if flows == 1 and there is None:
        return np.minimum(most, blocks)
    place = np.arange(1, len(most) + 1)[:, None]
    if there is not None:
        most, place = most * there, np.add.accumulate(there, axis=0, dtype=np.int64)
        flows = np.maximum(place[-1], 1)
    level, before = blocks // flows, (turn * blocks) % flows
    more = most > level
    if there is None and more.all():
        return level + ((place - 1 - before) % flows < blocks - level * flows)
    if there is not None and np.array_equal(more, there):
        others, given, rest = flows, more * level, blocks - level * flows
    else:
        turned = place > before
        while True:  # blocks left by flows at their maximum raise the level of the other flows
            others = np.add.reduce(more, axis=0)
            full = np.add.reduce(np.where(more, 0, most), axis=0)
            level = np.where(others > 0, (blocks - full) // np.maximum(others, 1), level)
            still = more & (most > level)
            if np.array_equal(still, more):
                break
            more = still
        given = np.where(more, level, most)
        rest = blocks - np.add.reduce(given, axis=0)
        place, before = np.add.accumulate(more, axis=0, dtype=np.int64), np.add.reduce(more > turned, axis=0)
    # the remainder goes to the flows after the first `before`, and then to the first ones
    given += more & (((place > before) & (place <= before + rest)) | (place <= before + rest - others))
    return given


def rounded(shares: FloatArray, blocks: int) -> IntArray:
    """Return [n] whole blocks for shares of the band, rounded down; the largest remainders get one more each."""
    exact = shares * blocks
    whole = np.floor(exact + 1e-9).astype(np.int64)
    more = min(round(float(exact.sum())), blocks) - int(whole.sum())
    if more > 0:
        whole[np.argsort(whole - exact, kind="stable")[:more]] += 1
    return whole


def in_order(order: Sequence[int] | Rows, wanted: IntArray, blocks: int) -> IntArray:
    """Return how many blocks flows get [n], served in order; each gets all that it can use while blocks remain."""
    rows = np.asarray(order, dtype=np.intp)
    want = wanted[rows]
    before = np.cumsum(want) - want
    given = np.zeros_like(wanted)
    given[rows] = np.minimum(np.maximum(blocks - before, 0), want)  # np.clip takes three times as long here
    return given
