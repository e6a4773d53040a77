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

SUBCARRIERS = 12  # subcarriers per resource block: 3GPP TS 38.211, 4.4.4.1
BLOCK_ELEMENTS = SUBCARRIERS * 14  # resource elements of a block in a slot
# Subcarrier spacing in kHz -> resource blocks of a carrier by its bandwidth in MHz: 3GPP TS 38.101-1, Table 5.3.2-1
_BLOCKS = {
    15: {5: 25, 10: 52, 15: 79, 20: 106, 25: 133, 30: 160, 35: 188, 40: 216, 45: 242, 50: 270},
    30: {5: 11, 10: 24, 15: 38, 20: 51, 25: 65, 30: 78, 35: 92, 40: 106, 45: 119}
    | {50: 133, 60: 162, 70: 189, 80: 217, 90: 245, 100: 273},
    60: {10: 11, 15: 18, 20: 24, 25: 31, 30: 38, 35: 44, 40: 51, 45: 58, 50: 65}
    | {60: 79, 70: 93, 80: 107, 90: 121, 100: 135},
}
# number of steps above the step reached on all blocks that are tried on fewer blocks: with one layer, with several
_STEPS_MORE = (2, 3)
_ELSEWHERE = 0.95  # share of the band that blocks occupy where the table lists none
_ROUNDING = 1e-9  # an interpolated whole number may be slightly too small


def block_hz(slot_s: float) -> float:
    """Return the bandwidth of a resource block; 1 ms slots have 15 kHz subcarriers, and 0.5 ms slots 30 kHz."""
    return SUBCARRIERS * 15.0 / slot_s


def blocks_of(bandwidth_hz: float, slot_s: float) -> int:
    """Return a carrier's number of resource blocks, at least one; a wider band never has fewer.

    Between two listed bandwidths, the number is interpolated and rounded down. Beyond them, and with subcarrier
    spacings that are not listed, blocks occupy 95 % of the band; listed carriers have guard bands of 2 to 21 %.

    Source: 3GPP TS 38.101-1, Table 5.3.2-1.
    """
    spacing_khz, mhz = 15e-3 / slot_s, bandwidth_hz / 1e6
    elsewhere = max(1, int(_ELSEWHERE * bandwidth_hz / block_hz(slot_s)))
    listed = _BLOCKS.get(round(spacing_khz)) if spacing_khz == round(spacing_khz) else None
    if listed is None:
        return elsewhere
    widths_mhz, blocks = [*listed], [*listed.values()]
    if mhz < widths_mhz[0]:
        return min(elsewhere, blocks[0])
    if mhz > widths_mhz[-1]:
        return max(elsewhere, blocks[-1])
    return int(np.interp(mhz, widths_mhz, blocks) + _ROUNDING)


@dataclass(frozen=True)
class BlockLink:
    """The SNR of n flows on resource blocks in s slots, as arrays [n, s].

    A flow on M blocks has the SNR min(alone / M, most), since its power is spread over M blocks, and the power on a
    block is at most what power control allows.

    alone: the SNR with all of the flow's power on one block, or None for a transmitter with the same power on every
    block. most: the SNR at the highest power that power control allows on a block. step: number of the table's rates
    that the flow reaches on one block, if known.
    """

    alone: FloatArray | None
    most: FloatArray
    step: IntArray | None = None

    def at(self, slots: slice) -> "BlockLink":
        """Return the flows' SNR and steps in the given slots."""
        alone = None if self.alone is None else self.alone[:, slots]
        return BlockLink(alone, self.most[:, slots], None if self.step is None else self.step[:, slots])

    def steps_of(self, steps: Steps) -> IntArray:
        """Return [n, s] the number of a table's rates that each flow reaches on one block."""
        if self.step is not None:
            return self.step
        on_one = self.most if self.alone is None else np.minimum(self.most, self.alone)
        return steps.needs.searchsorted(on_one, side="right")


def usable(link: BlockLink, steps: Steps | None, blocks: int) -> IntArray:
    """Return [n, s] the maximum number of blocks on which each flow can send bits, 0 to `blocks`.

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
    """Return each flow's rate on its blocks, and the number of blocks that it uses.

    A power-limited flow uses fewer blocks than it was given if it sends more bits on fewer blocks.

    Args:
        given: [n, s] blocks given to each flow in each slot.
        cap: highest rate on a block in bit/s/Hz with Shannon's rates; None for no limit.

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
    # rates of flows limited by power control, whose SNR is the same on fewer blocks
    rates = given * steps.rates.take(step)
    if link.alone is None:
        return rates, given
    # with 0 blocks, `given * link.most` may be 0 times infinity, and `alone / given` divides by 0
    with np.errstate(invalid="ignore", divide="ignore"):
        limited = given * link.most > link.alone
        if not limited.any():
            return rates, np.where(rates > 0, given, 0)
        best, least = _limited(link.alone, step, given, steps)
    rates = np.where(limited, best, rates)
    return rates, np.where(rates > 0, np.where(limited, least, given), 0)


def _limited(alone: FloatArray, step: IntArray, given: IntArray, steps: Steps) -> tuple[FloatArray, IntArray]:
    """Return the highest rate times blocks [n, s] of power-limited flows, and the number of blocks that reach it.

    With its power spread over all its blocks, a flow reaches some step of the table. To reach a higher step, the flow
    uses only as many blocks as its power can raise to that step's SNR. The rate per power falls from step to step, so
    a higher step carries more bits only because of rounding to whole blocks, or with several layers.
    """
    more, needs, table = _padded(steps)
    highest = np.minimum(steps.needs.searchsorted(alone / given, side="right") + more, step)
    tried = highest + np.arange(more + 1)[:, None, None]
    blocks = np.minimum(given, alone / needs.take(tried)).astype(np.int64)
    carries = table.take(tried) * blocks
    best = np.maximum.reduce(carries, axis=0)
    # among steps that carry the same number of bits, use the one with the fewest blocks
    return best, np.minimum.reduce(np.where(carries == best, blocks, given), axis=0)


@lru_cache(maxsize=64)
def _padded(steps: Steps) -> tuple[int, FloatArray, FloatArray]:
    """Return the number of steps to try above the step reached on all blocks, and the SNR and rate of all steps.

    The arrays begin with that number of padding steps, with infinite SNR and rate 0.
    """
    more = _STEPS_MORE[steps.layers > 1]
    none = np.zeros(more)
    return more, np.concatenate([none + np.inf, [np.inf], steps.needs]), np.concatenate([none, steps.rates])


def divide(
    most: IntArray, blocks: int | IntArray, earlier: IntArray, there: npt.NDArray[np.bool_] | None = None
) -> IntArray:
    """Divide each slot's blocks equally among flows; blocks that a flow cannot use go to other flows.

    The remainder of the division goes to flows in turn, one block each; the next slot continues with the next flow.

    Args:
        most: [n, s] number of blocks that each flow can use in each slot.
        blocks: number of blocks to divide; one number for all slots, or [s].
        earlier: [s] number of blocks that were divided in all earlier slots.
        there: [n, s] whether a flow takes part in a slot; by default, all flows take part.

    Returns:
        [n, s] blocks of each flow; they sum to all blocks, or to the number that flows can use if that is smaller.
    """
    flows: int | IntArray = len(most)
    if flows == 1 and there is None:
        return np.minimum(most, blocks)
    place = np.arange(1, len(most) + 1)[:, None]
    if there is not None:
        most, place = most * there, np.add.accumulate(there, axis=0, dtype=np.int64)
        flows = np.maximum(place[-1], 1)
    level, before = blocks // flows, earlier % flows
    more = most > level
    if there is None and more.all():
        return level + ((place - 1 - before) % flows < blocks - level * flows)
    if there is not None and np.array_equal(more, there):
        others, given, rest = flows, more * level, blocks - level * flows
    else:
        turned = place > before
        while True:  # blocks that flows at their maximum leave over go to the other flows
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
    # the remainder goes to the flows after the first `before` flows, and then to those first flows
    given += more & (((place > before) & (place <= before + rest)) | (place <= before + rest - others))
    return given


def quotas(parts: FloatArray, blocks: int, turn: IntArray) -> tuple[IntArray, IntArray]:
    """Divide slots in whole blocks among groups, so that each group gets its part of all blocks on average.

    Args:
        parts: [groups] part of the band of each group; the sum is 1.
        turn: [s] number of each slot, counting the slots that serve this direction.

    Returns:
        [groups, s] blocks of each group in each slot; [groups, s] blocks of each group in all earlier slots.
    """
    ends = np.cumsum(parts)[:, None] * blocks
    ends[-1] = blocks
    # the first groups together get the whole blocks that are due to them by the end of each slot
    earlier, later = (np.floor(ends * when + 1e-9).astype(np.int64) for when in (turn, turn + 1))
    before = np.diff(earlier, axis=0, prepend=0)
    return np.diff(later, axis=0, prepend=0) - before, before


def rounded(shares: FloatArray, blocks: int) -> IntArray:
    """Round shares of the band down to whole blocks [n]; shares with the largest remainders get one more block."""
    exact = shares * blocks
    whole = np.floor(exact + 1e-9).astype(np.int64)
    more = min(round(float(exact.sum())), blocks) - int(whole.sum())
    if more > 0:
        whole[np.argsort(whole - exact, kind="stable")[:more]] += 1
    return whole


def in_order(order: Sequence[int] | Rows, wanted: IntArray, blocks: int) -> IntArray:
    """Return [n] the blocks of flows that are served in order; each gets all it wants while blocks remain."""
    rows = np.asarray(order, dtype=np.intp)
    want = wanted[rows]
    before = np.cumsum(want) - want
    given = np.zeros_like(wanted)
    given[rows] = np.minimum(np.maximum(blocks - before, 0), want)  # np.clip takes three times as long here
    return given
