"""Simulate flows that share a band's resource blocks, slot by slot; see `edgefl.channel.resource_blocks`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from edgefl.channel.band_flows import BandFlow, BandFlows
from edgefl.channel.band_slots import BandRules, BandState
from edgefl.channel.interference import power_of_all
from edgefl.channel.modulation import Steps
from edgefl.channel.resource_blocks import BlockLink, carried, divide, in_order, quotas, rounded, usable
from edgefl.channel.schedulers.equal_share import EqualShare
from edgefl.channel.units import FloatArray

IntArray = npt.NDArray[np.int64]
# Length of the first look-ahead in slots. The length doubles while no flow ends, up to the number of slots whose
# fading is read at once, which is a multiple of all lengths. With a scheduler that decides in every slot, look-aheads
# are costly and new flows invalidate them, so the first look-ahead is shorter.
FIRST_LOOK, FIRST_LOOK_BY_SLOT, MOST_AT_ONCE = 128, 16, 256
# Served slots of a look-ahead that are computed first, since most look-aheads end in these slots
FIRST_SERVED = 8


@dataclass(frozen=True)
class _Look:
    """Rates and blocks of flows in those slots of a look-ahead that serve the band's direction.

    first: number of serving slots before the look-ahead. weights: [s] weight of each slot. totals: [n, s] sums of
    rates up to each slot. used: [n, s] blocks in use. history: [s, 2, n] airtime and average rate after each slot, or
    None if shares are fixed.
    """

    first: int
    weights: FloatArray
    totals: FloatArray
    used: IntArray
    history: FloatArray | None

    def and_then(self, later: "_Look") -> "_Look":
        """Return this look-ahead joined with the next look-ahead; shares must be fixed in both."""
        totals = np.concatenate([self.totals, later.totals], axis=1)
        used = np.concatenate([self.used, later.used], axis=1)
        return _Look(self.first, np.concatenate([self.weights, later.weights]), totals, used, None)


@dataclass
class _Table:
    """Table of link values in the served slots of a block, as a growing array [rows, values, slots]."""

    rows: FloatArray
    used: int = 0

    def add(self, rows: FloatArray) -> IntArray:
        """Add rows [n, values, slots]; return their row numbers [n]."""
        begin, self.used = self.used, self.used + len(rows)
        if self.used > len(self.rows):
            grown = np.empty((2 * self.used, *rows.shape[1:]))
            grown[:begin] = self.rows[:begin]
            self.rows = grown
        self.rows[begin : self.used] = rows
        return np.arange(begin, self.used)


@dataclass(frozen=True)
class BlockRules(BandRules):
    """Divide a band's resource blocks among flows, and compute their rates.

    In each slot, every block goes to a flow that can use it: a flow that does not reach the table's lowest rate on a
    single block gets no block, and a flow with power for only a few blocks leaves the remaining blocks to others.
    Schedulers with equal shares divide the blocks equally, and the remainder goes to flows in turn; other fixed
    shares are rounded to whole blocks. A scheduler that decides in every slot ranks the flows, which get blocks in
    this order until no block is left: in the uplink, each flow gets as many blocks as its power can serve at power
    control's target; in the downlink, the first flow gets all blocks. Blocks that are left over are divided equally
    among all flows that can use them.

    Source: 3GPP TS 38.214, 5.1.2.2 and 6.1.2.2 (any number of whole blocks); TS 38.321, 5.4.6 (power headroom reports
    tell a base station on how many blocks a device reaches its target). Left out: resource block groups, the control
    channel's limit on devices per slot, and outdated reports.
    """

    @property
    def alike(self) -> bool:
        """Whether all flows have the same share of the band."""
        return self.groups is None and type(self.scheduler) is EqualShare

    def begin(self, flows: BandFlows, state: BandState) -> tuple[BandState, FloatArray | None]:
        if not self.scheduler.per_slot:
            if self.alike:  # equal shares do not depend on the flows
                return state, np.full(len(flows), 1.0 / len(flows))
            return state, self._checked(
                self._shares(self._parts(flows), self._view(flows, state)), len(flows)
            )
        mean = self._link(flows.snr, flows.most, np.ones((len(flows), 1)))
        return self._started(flows, state, self._alone(mean, self._widest(flows.widest))[:, 0]), None

    def run(
        self, flows: BandFlows, state: BandState, stop: int, shares: FloatArray | None, now: int
    ) -> tuple[BandState, list[int]]:
        frame, need = self.carrier.frame, flows.need
        turn = np.arange(frame.turn(state.slot), frame.turn(stop))
        if not len(turn):
            return replace(state, slot=stop, seen=None), []
        # most look-aheads end early, when a flow ends
        soon = len(turn) if shares is None else FIRST_SERVED
        seen = self._looked(flows, state, turn[:soon], shares)
        if len(turn) > soon and (seen.totals[:, -1] < need).all():
            later = self._looked(flows, replace(state, got=seen.totals[:, -1]), turn[soon:], shares)
            seen = seen.and_then(later)
        ended = np.flatnonzero(seen.totals[:, -1] >= need)
        if len(ended):
            last = int(np.count_nonzero(seen.totals[ended] < need[ended, None], axis=1).min())
            stop = frame.slot_of(seen.first + last) + 1
            ended = np.flatnonzero(seen.totals[:, last] >= need)
        return self._after(flows, state, seen, stop), ended.tolist()

    def _looked(
        self, flows: BandFlows, state: BandState, turn: IntArray, shares: FloatArray | None
    ) -> "_Look":
        """Compute the flows' rates and blocks in the served slots after a state, as if no flow ended."""
        weights = self.weights(turn)
        link, most = self._links(flows, state.slot, turn)
        history = None
        if shares is not None:
            given = self._held(flows, shares, most, turn)
        else:
            given, history = self._by_slot(flows, state, link, most, weights, turn)
        rates, used = self.rates(link, given)
        return _Look(int(turn[0]), weights, _summed(state.got, rates * weights), used, history)

    def within(
        self,
        flows: BandFlows,
        state: BandState,
        look: BandState,
        stop: int,
        shares: FloatArray | None,
    ) -> BandState:
        if self.carrier.frame.turn(state.slot) == self.carrier.frame.turn(stop):
            return replace(state, slot=stop, seen=None)
        return self._after(flows, state, look.seen, stop)

    def _after(self, flows: BandFlows, state: BandState, seen: "_Look", stop: int) -> BandState:
        """Return the state at a slot within a look-ahead, at least one served slot after the given state."""
        turn = self.carrier.frame.turn
        begin, end = turn(state.slot) - seen.first, turn(stop) - seen.first
        used, weights = seen.used[:, begin:end], seen.weights[begin:end]
        busy, on, sent_of = (used > 0) * weights, state.on, state.sent_of
        if self.carrier.power == "full":
            at_power = busy * np.minimum(used * self.power_on_block(flows)[:, None], 1.0)
            on = _summed(on.T.ravel(), np.concatenate([busy, at_power]))[:, -1].reshape(2, -1).T
        if self.groups is not None:
            parts = (used * weights).sum(axis=1) / self.blocks
            sent_of = sent_of + np.bincount(self._of(flows), parts, minlength=len(sent_of))
        airtime, average = state.airtime, state.average
        if seen.history is not None:
            airtime, average = seen.history[end - 1].copy()
        sent = state.sent + float(np.add.reduce(busy, axis=None))
        got = seen.totals[:, end - 1].copy()
        return BandState(stop, sent, got, average, airtime, sent_of, on, seen)

    def power_on_block(self, flows: BandFlows) -> FloatArray:
        """Return the fraction [n] of its power that each device uses per resource block under power control."""
        return np.minimum(flows.most / (flows.snr * self.blocks), 1.0)

    @cached_property
    def _tables(self) -> "dict[int, _Table]":
        return {}

    def weights(self, turn: IntArray) -> FloatArray:
        """Return the weights [s] of served slots, given how many earlier slots serve the direction."""
        return self._served[turn % len(self._served)]

    @cached_property
    def _served(self) -> FloatArray:
        """The weights of the slots of a period that serve the direction."""
        weights = np.asarray(self.carrier.frame.weights, dtype=float)
        return weights[weights > 0]

    @property
    def blocks(self) -> int:
        assert self.carrier.blocks is not None
        return self.carrier.blocks

    @property
    def _steps(self) -> Steps | None:
        return self.carrier.steps and self.carrier.steps.whole

    def _link(self, snr: FloatArray, most: FloatArray, power: FloatArray) -> BlockLink:
        """Return the flows' SNR on resource blocks, from their mean SNR [n] and fading |h|^2 [n, s]."""
        alone, steps = None, self._steps
        if self.carrier.power == "full":
            alone, snr_on_block = (snr * self.blocks)[:, None] * power, most[:, None] * power
        else:
            snr_on_block = np.minimum(snr, most)[:, None] * power
        link = BlockLink(alone, snr_on_block)
        return link if steps is None else replace(link, step=link.steps_of(steps))

    def _links(self, flows: BandFlows, slot: int, turn: IntArray) -> tuple[BlockLink, IntArray]:
        """Return the flows' SNR in the served slots `turn`, and how many resource blocks each flow can use there."""
        block = slot // MOST_AT_ONCE
        rows = flows.rows.get(block)
        if rows is None:
            rows = flows.rows[block] = np.full(len(flows), -1)
        if rows.min() < 0:
            new = np.flatnonzero(rows < 0)
            reached = self.reached(BandFlows([flows[place] for place in new.tolist()]), block)
            rows[new] = self._tables.setdefault(block, _Table(reached[:0])).add(reached)
            # keep the previous block: plans look one block ahead, and a new flow may discard them
            for kept in (flows.rows, self._tables):
                for past in [at for at in kept if at < block - 1]:
                    del kept[past]
        first = int(turn[0]) - self.carrier.frame.turn(block * MOST_AT_ONCE)
        return self.link(self._tables[block].rows[rows, :, first : first + len(turn)])

    def reached(self, flows: BandFlows, block: int) -> FloatArray:
        """Return link values [n, values, slots] of flows in the served slots of a block, as input of `link`."""
        link, usable_ = self.reach(flows.snr, flows.most, flows.widest, self.fading(flows, block))
        step = usable_ if link.step is None else link.step
        return np.stack([link.most, step, usable_, *([] if link.alone is None else [link.alone])], axis=1)

    def fading(self, flows: Sequence[BandFlow], block: int) -> FloatArray:
        """Return the fading |h|^2 [n, s] of flows in the served slots of a block."""
        first_slot = block * MOST_AT_ONCE
        power = power_of_all([flow.fading for flow in flows], first_slot, MOST_AT_ONCE)
        weights = self.carrier.frame.weights_from(first_slot, MOST_AT_ONCE)
        return power if weights.all() else power[:, weights > 0]

    def reach(
        self, snr: FloatArray, most: FloatArray, widest: FloatArray, power: FloatArray
    ) -> tuple[BlockLink, IntArray]:
        """Return flows' SNR and how many blocks they can use, given values [n] and fading |h|^2 [n, s]."""
        link = self._link(snr, most, power)
        return link, np.minimum(usable(link, self._steps, self.blocks), self._widest(widest))

    def link(self, reached: FloatArray) -> tuple[BlockLink, IntArray]:
        """Return the flows' SNR and how many blocks each flow can use, from the values that `reached` returned."""
        most, _, _, *alone = reached.swapaxes(0, 1)
        step, usable_ = reached[:, 1:3].astype(np.int64).swapaxes(0, 1)
        return BlockLink(alone[0] if alone else None, most, None if self._steps is None else step), usable_

    def rates(self, link: BlockLink, given: IntArray) -> tuple[FloatArray, IntArray]:
        rates, used = carried(link, given, self._steps, self.carrier.cap)
        return rates / self.blocks, used

    def _alone(self, link: BlockLink, widest: IntArray) -> FloatArray:
        """Return [n, s] bit/s/Hz of each flow alone in the band, on all blocks it can use up to `widest` [n, 1]."""
        return self.rates(link, np.broadcast_to(widest, link.most.shape))[0]

    def _widest(self, widest: FloatArray) -> IntArray:
        """Return [n, 1] the number of blocks, at least one, in the part [n] of the band that each radio can use."""
        return np.maximum((widest * self.blocks + 1e-9).astype(np.int64), 1)[:, None]

    def _quotas(
        self, flows: BandFlows, turn: IntArray
    ) -> list[tuple[npt.NDArray[np.intp] | slice, IntArray, IntArray]]:
        """Return each group's rows, and its numbers of resource blocks in each slot and in all earlier slots, [s]."""
        if self.groups is None:
            return [(slice(None), np.full(len(turn), self.blocks), turn * self.blocks)]
        parts = self._parts(flows)
        each = zip(*quotas(np.array([part for _, part in parts]), self.blocks, turn), strict=True)
        return [(rows, *of_group) for (rows, _), of_group in zip(parts, each, strict=True)]

    def _held(self, flows: BandFlows, shares: FloatArray, most: IntArray, turn: IntArray) -> IntArray:
        """Return [n, s] the blocks of flows with fixed shares of the band."""
        if (
            self.groups is None and (shares == shares[0]).all()
        ):  # with equal shares, no block is left that another flow could use
            return divide(most, self.blocks, turn * self.blocks)
        given = np.zeros_like(most)
        for rows, quota, earlier in self._quotas(flows, turn):
            if np.ptp(shares[rows]) == 0.0:
                given[rows] = divide(most[rows], quota, earlier)
            else:
                given[rows] = np.minimum(most[rows], rounded(shares[rows], self.blocks)[:, None])
        return self._all_given(given, most, turn)

    def _all_given(self, given: IntArray, most: IntArray, turn: IntArray) -> IntArray:
        """Return the flows' blocks [n, s], with left-over blocks divided among flows that can use more of them."""
        left = self.blocks - given.sum(axis=0)
        return given + divide(most - given, left, turn * left) if left.any() else given

    def _by_slot(
        self,
        flows: BandFlows,
        state: BandState,
        link: BlockLink,
        most: IntArray,
        weights: FloatArray,
        turns: IntArray,
    ) -> tuple[IntArray, FloatArray]:
        """Return the blocks [n, s] that the scheduler assigns, and [s, 2, n] airtime and average after each slot.

        No blocks are assigned after the slot in which a flow ends.
        """
        widest = self._widest(flows.widest)
        alone = np.ascontiguousarray(self._alone(link, widest).T)  # rate of each flow alone in the band
        airtime, average, got = state.airtime.copy(), state.average.copy(), state.got.copy()
        memory, given = self.scheduler.memory, np.zeros_like(most)
        history = np.empty((len(turns), 2, len(flows)))
        view = self._view(flows, state)
        view.average, view.airtime = average, airtime
        need, of_groups = flows.need, self._quotas(flows, turns)
        targets = np.minimum(most, self._to_target(flows)[:, None])
        for i, (weight, turn) in enumerate(zip(weights.tolist(), turns.tolist(), strict=True)):
            view.slot, view.efficiency = self.carrier.frame.slot_of(turn), alone[i]
            for rows, blocks, _ in of_groups:
                quota = int(blocks[i])
                some = view if isinstance(rows, slice) else view.some(rows, quota / self.blocks)
                order = self.scheduler.order(some)
                if getattr(order, "shape", None) != (len(some),):
                    name = f"{type(self.scheduler).__module__}:{type(self.scheduler).__name__}"
                    raise ValueError(
                        f"{name}.order() must give an order of {len(some)} flows, got {order!r:.200}"
                    )
                given[rows, i] = in_order(order, targets[rows, i], quota)
            now = slice(i, i + 1)
            given[:, now] = self._all_given(given[:, now], most[:, now], turns[now])
            rate = self.rates(link.at(now), given[:, now])[0][:, 0]
            got += weight * rate
            airtime += weight * given[:, i] / self.blocks
            view.remaining_bits = np.maximum(need - got, 0.0) * self.carrier.unit_bits
            if memory is not None:
                decay = memory**weight  # a special slot counts in proportion to its length
                average *= decay
                average += (1.0 - decay) * rate
            history[i] = airtime, average
            if (got >= need).any():
                break
        return given, history

    def _to_target(self, flows: BandFlows) -> IntArray:
        """Return [n] the number of blocks, at least one, on which each flow can reach power control's target.

        Without power control, and in the downlink, the result is the number of all blocks.
        """
        reached = np.full(len(flows), float(self.blocks))
        if self.carrier.power == "full":
            reached = np.where(flows.most < np.inf, flows.snr * self.blocks / flows.most, np.inf)
        return np.clip(reached, 1, self.blocks).astype(np.int64)


def _summed(begin: FloatArray, rows: FloatArray) -> FloatArray:
    """Return [n, s] cumulative sums, added in order, so that rounding does not depend on where a run begins."""
    rows = rows.copy()
    rows[:, 0] += begin
    return np.add.accumulate(rows, axis=1, out=rows)
