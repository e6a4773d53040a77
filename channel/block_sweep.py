"""Timing of flows that share a band's resource blocks equally, in one pass over its slots."""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.band_flows import BandFlow, BandFlows
from edgefl.channel.band_slots import NEVER
from edgefl.channel.block_slots import FIRST_LOOK, MOST_AT_ONCE, BlockRules
from edgefl.channel.resource_blocks import divide, divide_joining
from edgefl.channel.units import FloatArray

Rows = npt.NDArray[np.intp]
# Served slots that are computed at once, as a flow that ends changes those after it
_SERVED = 16


class BlockSweep:
    """Time flows that have a band of resource blocks to themselves, in equal shares.

    A flow that joins or leaves voids the plan of a `SharedBand`, and the numbers of all flows are gathered again.
    Here each number stays in its place, flows join within a look, and what flows reach in a block of slots is read
    once. Results are the same bit for bit.

    Args:
        flows: the slot at which each flow joins, in ascending order, and the flow, which has bits to move.
        sent: airtime of all shares up to the first slot, as in `BandState`.
    """

    def __init__(self, rules: BlockRules, flows: Sequence[tuple[int, BandFlow]], sent: float) -> None:
        self.sent = sent
        self.slot = 0  # up to which the flows are served
        self._rules = rules
        self._joins = [slot for slot, _ in flows]
        self._turns = [rules.carrier.frame.turn(slot) for slot in self._joins]
        self._flows = BandFlows([flow for _, flow in flows])
        self._need = self._flows.need
        self._on_block = rules.power_on_block(self._flows)
        # what has been served, and in the uplink slots with any block and the power in them, as in `BandState`
        self._sums = np.zeros((3 if rules.carrier.power == "full" else 1, len(flows)))
        self._busy: list[FloatArray] = []  # airtime by flow and slot since a flow joined or left
        self._block = -1  # of slots, whose results are in the table
        self._place, self._table = np.empty(len(flows), dtype=np.intp), np.empty((0, 0, 0))

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield slots up to which flows are served, and the ids of the flows that have moved their payloads there.

        A plan of a `SharedBand` ends in the same slots, and where a flow joins.
        """
        there, joined, slot, stride = np.empty(0, dtype=np.intp), 0, 0, FIRST_LOOK
        while joined < len(self._joins) or len(there):
            joins = self._joins[joined] if joined < len(self._joins) else NEVER
            if joins == slot or not len(there):
                slot, stride = joins, FIRST_LOOK
                there, joined = np.append(there, joined), joined + 1
                self._count()
                continue
            stop = slot + stride - slot % stride
            if joins < stop:
                stop = min(stop, joins + FIRST_LOOK - joins % FIRST_LOOK)
            slot, ended = self._serve(there, joined, slot, stop)
            if (now := bisect_left(self._joins, slot, joined)) > joined:
                there, joined, stride = np.append(there, np.arange(joined, now)), now, FIRST_LOOK
            if ended:
                there, stride = there[self._sums[0, there] < self._need[there]], FIRST_LOOK
            elif slot == stop:
                stride = MOST_AT_ONCE
            if ended or slot == stop:
                self._count()
                self.slot = slot
                yield slot, [self._flows[row].id for row in ended]

    def sent_by(self) -> dict[Hashable, Sequence[float]]:
        """Return each flow's slots with any block and its power in them, as `SharedBand.sent_by` does."""
        on = self._sums[1:].T.tolist()
        return {
            flow.id: each for flow, each in zip(self._flows, on, strict=True) if each and not flow.background
        }

    def _serve(self, there: Rows, joined: int, slot: int, stop: int) -> tuple[int, list[int]]:
        """Serve flows until `stop` or until the first flow ends; return that slot and the flows that end.

        Args:
            there: the flows at the first slot. joined: how many flows have joined; the next ones may join in between.
        """
        rules, frame = self._rules, self._rules.carrier.frame
        at, end = frame.turn(slot), frame.turn(stop)
        if at == end:
            return stop, []
        if end > at + _SERVED:
            end = at + _SERVED
            stop = frame.slot_of(end - 1) + 1
        turn, new = np.arange(at, end), bisect_left(self._turns, end, joined)
        rows, begins = there, [begin - at for begin in self._turns[joined:new]]
        if begins:
            rows = np.append(there, np.arange(joined, new))
        link, most = rules.link(self._reached(rows, joined, slot, at, len(turn)))
        if begins:
            many = len(there) + np.searchsorted(begins, turn - at, side="right")
            given = divide_joining(most, rules.blocks, turn, many)
        else:
            given = divide(most, rules.blocks, turn)
        rates, used = rules.rates(link, given)
        weights, sums = rules.weights(turn), np.empty((len(self._sums), *used.shape))
        np.multiply(rates, weights, out=sums[0])
        busy = (used > 0) * weights
        if len(sums) > 1:
            sums[1] = busy
            np.multiply(busy, np.minimum(used * self._on_block[rows, None], 1.0), out=sums[2])
        # summed in order, so that rounding does not depend on where a run begins
        sums[:, :, 0] += self._sums[:, rows]
        np.add.accumulate(sums, axis=2, out=sums)
        need, last = self._need[rows], len(turn)
        ended = (sums[0, :, -1] >= need).nonzero()[0]
        if len(ended):
            last = int(np.count_nonzero(sums[0, ended] < need[ended, None], axis=1).min()) + 1
            stop, ended = frame.slot_of(at + last - 1) + 1, (sums[0, :, last - 1] >= need).nonzero()[0]
        self._sums[:, rows] = sums[:, :, last - 1]
        begin = 0
        for flows, until in enumerate([*begins, last], len(there)):
            self._busy.append(busy[:flows, begin : min(until, last)])
            if until >= last:
                break
            self._count()  # a flow joins
            begin = until
        return stop, rows[ended].tolist()

    def _count(self) -> None:
        """Add the airtime since a flow joined or left; one sum over flows and slots, as it may be rounded."""
        if self._busy:
            self.sent += float(np.add.reduce(np.concatenate(self._busy, axis=1), axis=None))
            self._busy.clear()

    def _reached(self, rows: Rows, joined: int, slot: int, at: int, many: int) -> FloatArray:
        """Return what flows reach in a number of served slots, in a slot's block; see `BlockRules.reached`."""
        block = slot // MOST_AT_ONCE
        if block != self._block:
            joining = np.arange(joined, bisect_left(self._joins, (block + 1) * MOST_AT_ONCE))
            ahead = np.append(rows[rows < joined], joining)
            self._table = self._rules.reached(BandFlows([self._flows[row] for row in ahead.tolist()]), block)
            self._place[ahead], self._block = np.arange(len(ahead)), block
        begin = at - self._rules.carrier.frame.turn(block * MOST_AT_ONCE)
        return self._table[self._place[rows], :, begin : begin + many]
