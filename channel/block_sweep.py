"""One pass over the slots of a band whose flows are all known and share its resource blocks equally."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from edgefl.channel.band_flows import BandFlow, BandFlows
from edgefl.channel.block_slots import FIRST_LOOK, FIRST_SERVED, MOST_AT_ONCE, BlockRules, summed
from edgefl.channel.resource_blocks import divide
from edgefl.channel.units import FloatArray

Rows = npt.NDArray[np.intp]


class BlockSweep:
    """Time flows that have a band of resource blocks to themselves, in equal shares.

    A flow that joins or leaves voids the plan of a `SharedBand`, and the numbers of all flows are gathered again.
    Here each number stays in its place, and only the list of rows to read changes. Results are the same bit for bit.

    Args:
        flows: the slot at which each flow joins, in ascending order, and the flow, which has bits to move.
        sent: airtime of all shares up to the first slot, as in `BandState`.
    """

    def __init__(self, rules: BlockRules, flows: Sequence[tuple[int, BandFlow]], sent: float) -> None:
        self.sent = sent
        self._rules = rules
        self._joins = [slot for slot, _ in flows]
        self._flows = BandFlows([flow for _, flow in flows])
        self._got = np.zeros(len(flows))
        self._on_block = rules.power_on_block(self._flows)
        self._on = np.zeros((2, len(flows)))
        self._block = -1  # of slots, whose results are in the table
        self._place, self._table = np.empty(len(flows), dtype=np.intp), np.empty((0, 0, 0))

    def __iter__(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each slot boundary up to which a band is planned at once, and the rows of flows that end there."""
        slot, joined, stride, there = 0, 0, FIRST_LOOK, np.empty(0, dtype=np.intp)
        for joins in (*self._joins, None):
            while len(there) and (joins is None or slot < joins):
                stop = slot + stride - slot % stride
                slot, stay = self._step(there, slot, stop if joins is None else min(stop, joins))
                ended = there[~stay].tolist()
                there, stride = (there[stay], FIRST_LOOK) if ended else (there, MOST_AT_ONCE)
                yield slot, ended
            if joins is not None:
                slot, stride, there, joined = joins, FIRST_LOOK, np.append(there, joined), joined + 1

    def sent_by(self, row: int) -> list[float]:
        """Return in how many slots a flow had blocks, and the sum of its power, as `SharedBand.sent_by` does."""
        on: list[float] = self._on[:, row].tolist()
        return on

    def _step(self, there: Rows, slot: int, stop: int) -> tuple[int, npt.NDArray[np.bool_]]:
        """Serve flows up to a slot or the first end of a flow; return this slot, and which flows go on."""
        rules, turn_of = self._rules, self._rules.carrier.frame.turn
        at, end, pieces, many = turn_of(slot), turn_of(stop), [], FIRST_SERVED
        got, need, stay = self._got[there], self._flows.need[there], np.ones(len(there), dtype=bool)
        turns = np.arange(at, end)
        while at < end and stay.all():
            turn = turns[at - end :][:many]
            link, most = rules.link(self._reached(there, slot, at, len(turn)))
            rates, used = rules.rates(link, divide(most, rules.blocks, turn))
            totals = summed(got, rates * rules.weights(turn))
            got, last = totals[:, -1], len(turn)
            stay = got < need
            if not stay.all():
                last = int(np.count_nonzero(totals[~stay] < need[~stay, None], axis=1).min()) + 1
                got, stop = totals[:, last - 1], rules.carrier.frame.slot_of(at + last - 1) + 1
                stay = got < need
            pieces.append(used[:, :last])
            at, many = at + last, 4 * many
        if pieces:
            used = pieces[0] if len(pieces) == 1 else np.concatenate(pieces, axis=1)
            weights, on_block = rules.weights(turns[: used.shape[1]]), self._on_block[there]
            sent, self._on[:, there] = rules.sent(used, weights, on_block, self._on[:, there])
            self.sent += sent
            self._got[there] = got
        return stop, stay

    def _reached(self, there: Rows, slot: int, at: int, many: int) -> FloatArray:
        """Return what flows reach in a number of served slots, in a slot's block; see `BlockRules.reached`."""
        block = slot // MOST_AT_ONCE
        if block != self._block:
            # with the flows that join in the same block
            joined, joining = (
                bisect_right(self._joins, slot),
                bisect_left(self._joins, (block + 1) * MOST_AT_ONCE),
            )
            rows = np.append(there, np.arange(joined, joining))
            self._table = self._rules.reached(BandFlows([self._flows[row] for row in rows.tolist()]), block)
            self._place[rows], self._block = np.arange(len(rows)), block
        begin = at - self._rules.carrier.frame.turn(block * MOST_AT_ONCE)
        return self._table[self._place[there], :, begin : begin + many]
