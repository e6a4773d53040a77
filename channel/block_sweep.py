"""Compute the times of flows that share a band's resource blocks equally, in one pass over the slots."""

from bisect import bisect_left
from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.band_flows import BandFlow, BandFlows
from edgefl.channel.band_slots import NEVER
from edgefl.channel.block_slots import FIRST_LOOK, MOST_AT_ONCE, BlockRules
from edgefl.channel.resource_blocks import divide
from edgefl.channel.units import FloatArray

# approximate flows times slots of a window, and a window's least number of slots; longer windows need more guesses
_AT_ONCE = (2048, 16)


class BlockSweep:
    """Compute the times of flows that have a band of resource blocks to themselves, in equal shares.

    In a `SharedBand`, a flow that joins or leaves invalidates the plan, and the values of all flows are gathered
    again. This class serves a window of slots at once, given a guess of the slots in which flows end; the first guess
    is that no flow ends. Results up to the first wrong slot of a guess are correct, and the ends found are the guess
    for the remaining slots, until a guess is right. Results are bit-identical to `SharedBand`'s.

    Args:
        flows: pairs of a slot, in ascending order, and the flow that joins at this slot with bits to send.
        sent: airtime of all shares up to the first slot, as in `BandState`.
    """

    def __init__(self, rules: BlockRules, flows: Sequence[tuple[int, BandFlow]], sent: float) -> None:
        self.sent = sent
        self.slot = 0  # boundary up to which the flows are served
        self._rules = rules
        self._joins = [slot for slot, _ in flows]
        self._flows = columns = BandFlows([flow for _, flow in flows])
        self._numbers = np.stack([columns.snr, columns.most, columns.need, columns.widest])
        self._on_block = rules.power_on_block(columns)[:, None]
        # served part of each flow's need; in the uplink also the slots with blocks, and the power in these slots
        self._sums = np.zeros((3 if rules.carrier.power == "full" else 1, len(flows)))
        # turns (served slots): before each flow joins; in all windows so far; in the windows with counted airtime
        self._turns = [rules.carrier.frame.turn(slot) for slot in self._joins]
        self._served = self._counted = 0
        # flows left after the last window, and the number of flows that have joined by then
        self._there, self._joined = np.empty(0, dtype=np.intp), 0
        # turn and row of each flow that has ended in the windows so far
        self._ends: deque[tuple[int, int]] = deque()
        # for each window with uncounted airtime: first turn, presence [n, slots] and airtime [n, slots] of flows
        self._windows: deque[tuple[int, npt.NDArray[np.bool_], FloatArray]] = deque()
        self._block, self._first = -1, 0  # block of slots whose fading is known, and its first turn
        self._place, self._fading = np.empty(len(flows), dtype=np.intp), np.empty((0, 0))

    def __iter__(self) -> Iterator[tuple[int, list[Any]]]:
        """Yield slots up to which flows are served, and the ids of the flows that have sent their payloads by then.

        Plans of a `SharedBand` end in the same slots, and also in the slots where flows join.
        """
        frame, there, joined, slot, stride = self._rules.carrier.frame, 0, 0, 0, FIRST_LOOK
        while joined < len(self._joins) or there:
            joins = self._joins[joined] if joined < len(self._joins) else NEVER
            stop = slot + stride - slot % stride if there else NEVER
            slot = min(joins, stop)
            turn = frame.turn(slot)
            while there and not self._ends and self._served < turn:
                self._serve()
            if self._ends and self._ends[0][0] <= turn:
                turn = self._ends[0][0]
                slot = min(slot, frame.slot_of(turn - 1) + 1)
            self._count(turn)
            ended = []
            while self._ends and self._ends[0][0] == turn:
                ended.append(self._flows[self._ends.popleft()[1]].id)
            if ended or slot == stop:
                there, stride = there - len(ended), FIRST_LOOK if ended else MOST_AT_ONCE
                self.slot = slot
                yield slot, ended
            else:
                there, joined, stride = there + 1, joined + 1, FIRST_LOOK

    def sent_by(self) -> dict[Hashable, Sequence[float]]:
        """Return each flow's number of slots with blocks, and its power in these slots, like `SharedBand.sent_by`."""
        on = self._sums[1:].T.tolist()
        return {
            flow.id: each for flow, each in zip(self._flows, on, strict=True) if each and not flow.background
        }

    def _serve(self) -> None:
        """Serve flows in the next window of slots."""
        rules, (at, end, joined) = self._rules, self._window()
        rows = np.append(self._there, np.arange(self._joined, joined))
        begins = np.array([at] * len(self._there) + self._turns[self._joined : joined])
        turn, weights = np.arange(at, end), rules.weights(np.arange(at, end))
        begun = begins[:, None] <= turn
        snr, most_snr, need, widest = self._numbers[:, rows]
        power = self._fading[self._place[rows], at - self._first : end - self._first]
        link, most = rules.reach(snr, most_snr, widest, power)
        there, used = np.empty(most.shape, dtype=bool), np.empty(most.shape)
        got, before = np.empty((len(turn), len(rows))), self._sums[0, rows]
        ends, right = np.full(len(rows), end + 1), 0
        while right < len(turn):
            now, guess = slice(right, None), ends
            np.logical_and(begun[:, now], turn[now] < guess[:, None], out=there[:, now])
            given = divide(most[:, now], rules.blocks, turn[now] * rules.blocks, there[:, now])
            rates, used[:, now] = rules.rates(link.at(now), given)
            np.multiply(rates, weights[now], out=got[now].T)
            _add_up(got[now], before if right == 0 else got[right - 1])
            ends = at + 1 + np.add.reduce(got < need, axis=0)
            right = int(np.minimum(ends, guess).min(where=ends != guess, initial=end)) - at
        self._sums[0, rows] = got[-1]
        busy = (used > 0) * weights
        if len(self._sums) > 1:
            on = np.concatenate([busy, busy * np.minimum(used * self._on_block[rows], 1.0)]).T.copy()
            _add_up(on, self._sums[1:, rows].ravel())
            self._sums[1:, rows] = on[-1].reshape(2, -1)
        self._windows.append((at, there, busy))
        ended = ends <= end
        self._ends.extend(sorted(zip(ends[ended].tolist(), rows[ended].tolist(), strict=True)))
        self._there, self._joined, self._served = rows[~ended], joined, end

    def _window(self) -> tuple[int, int, int]:
        """Return the turns at which the next window begins and ends, and how many flows have joined by its end.

        A window lies within a block of slots, whose fading is read here if the block is new.
        """
        frame, flows = self._rules.carrier.frame, len(self._there)
        at = self._served if flows else self._turns[self._joined]
        block = frame.slot_of(at) // MOST_AT_ONCE
        if block != self._block:
            joining = np.arange(self._joined, bisect_left(self._joins, (block + 1) * MOST_AT_ONCE))
            rows = np.append(self._there, joining)
            self._fading = self._rules.fading([self._flows[row] for row in rows.tolist()], block)
            self._place[rows], self._block = np.arange(len(rows)), block
            self._first = frame.turn(block * MOST_AT_ONCE)
        numbers, slots = _AT_ONCE
        # also count the flows that join before the window of the present flows would end
        flows += bisect_left(self._turns, at + numbers // (flows + 1), self._joined) - self._joined
        end = min(at + max(slots, numbers // (flows + 1)), frame.turn((block + 1) * MOST_AT_ONCE))
        return at, end, bisect_left(self._turns, end, self._joined)

    def _count(self, turn: int) -> None:
        """Add the airtime since a flow last joined or left, as a single sum, so that the rounding is fixed."""
        parts = []
        while self._windows and self._counted < turn:
            first, there, busy = self._windows[0]
            begin, last = max(self._counted - first, 0), first + busy.shape[1]
            if first + begin < turn:
                parts.append(busy[:, begin : turn - first][there[:, begin]])
            self._counted = min(last, turn)
            if last <= turn:
                self._windows.popleft()
        if parts:
            self.sent += float(np.add.reduce(np.concatenate(parts, axis=1), axis=None))
        self._counted = turn


def _add_up(rows: FloatArray, before: FloatArray) -> None:
    """Replace rows [s, n] by cumulative sums, added in order so that rounding does not depend on the first slot."""
    rows[0] += before
    if rows.shape[1] < 2 * len(rows):
        np.add.accumulate(rows, axis=0, out=rows)
        return
    for last, row in pairwise(rows):  # with many columns, a loop takes a third of the time
        row += last
