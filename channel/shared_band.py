"""The band of a cell in one direction, which flows share slot by slot."""

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from edgefl.channel.band_flows import BandFlow, BandFlows
from edgefl.channel.band_slots import NEVER, BandRules, BandState, Groups
from edgefl.channel.block_slots import FIRST_LOOK, FIRST_LOOK_BY_SLOT, MOST_AT_ONCE, BlockRules
from edgefl.channel.block_sweep import BlockSweep
from edgefl.channel.carrier import MAX_SLOTS, Carrier, check_snr, endless
from edgefl.channel.fading import BLOCK, Fading
from edgefl.channel.schedulers import Scheduler
from edgefl.channel.units import FloatArray

# Slots between two stored states of a plan if the scheduler decides in every slot
_STRIDE = 64
# Number of slots to search for the next end of a flow; few, since a flow that joins earlier invalidates the plan
HORIZON_SLOTS = 512
# Flows times slots above which a plan with fixed shares is computed in strides, to save memory
_LARGEST_RUN = 2**21


@dataclass
class _Plan:
    """The flows' states in the next slots, valid as long as no flow joins or leaves."""

    shares: FloatArray | None  # fixed shares, or None if a scheduler decides in every slot
    states: list[BandState]  # states in order of time; the last one ends the plan
    ended: list[int] = field(default_factory=list)  # flows that are complete in the last state
    looks: int = 0  # number of look-aheads so far


class SharedBand:
    """Compute the times of transfers that share a band, exactly, slot by slot.

    In slot n a flow with share b sends w_n b min(log2(1 + snr |h_n|^2 / b), cap) W tau bits, where w_n is the weight
    of a TDD frame. With power `per_resource_block`, the division by b in the logarithm is left out. A flow ends in
    the slot in which the bits it has sent add up to its payload; the rest of that slot is padding. A scheduler with
    fixed shares decides again when a flow joins, leaves or ends; other schedulers decide in every slot with w_n > 0.

    Fading is a function of link and slot, so looking ahead consumes no random numbers. Results are bit-identical,
    whenever and however often `settle`, `next_end` and `moved_bits` are called.

    Other transmitters behave like the transmitters of this band: with power `full` each share is sent at full power,
    so while K shares are in use here, each neighbour also uses K shares, and snr falls by a factor of 1 + K
    neighbours. A transmitter heard slot by slot (`Interfered`) puts its full power on one of K shares, where it
    interferes K times as much.

    With resource blocks, see `BlockRules`. Left out: control channels, retransmissions, interference between flows.
    """

    def __init__(self, scheduler: Scheduler, carrier: Carrier, groups: Groups | None = None) -> None:
        """
        Args:
            scheduler: one of `edgefl.channel.schedulers`.
            carrier: the whole band in this direction.
            groups: groups of flows that get parts of the band by weight, or None without groups.
        """
        self._band = (BlockRules if carrier.blocks else BandRules)(scheduler, carrier, groups)
        self._flows = BandFlows()
        self._done: list[BandFlow] = []
        self._ids: set[Hashable] = set()  # ids of the flows in `_flows` and `_done`
        of_groups = np.zeros(0 if groups is None else len(groups.weights))
        self._state = BandState(0, 0.0, np.empty(0), np.empty(0), np.empty(0), of_groups, np.empty((0, 2)))
        self._plan: _Plan | None = None
        self._joins = NEVER  # lower bound on the slot of the next join, which invalidates a plan
        self._paused = False
        self._sent: dict[Hashable, Sequence[float]] = {}

    def __len__(self) -> int:
        """Return the number of flows in the band, including complete flows that `settle` has not returned yet."""
        return len(self._flows) + len(self._done)

    @property
    def slot(self) -> int:
        """Boundary up to which the band is settled; slots before it are past."""
        return self._state.slot

    @property
    def complete(self) -> bool:
        """Whether there are complete flows that `settle` has not returned yet."""
        return bool(self._done)

    @property
    def sent_slots(self) -> float:
        """Airtime in slots of all shares up to the settled slot; K shares in use for a slot are K slots."""
        return self._state.sent

    def sent_slots_of(self, group: int) -> float:
        """Return the airtime of a group up to the settled slot, in slots at full power.

        With power `full`, a share in use for a slot counts as one slot, as in `sent_slots`; otherwise its airtime is
        weighted by its part of the band.
        """
        return float(self._state.sent_of[group])

    def add(
        self,
        id_: Hashable,
        payload_bits: float,
        *,
        snr_whole_band: float,
        fading: Fading,
        slot: int,
        most_snr: float = math.inf,
        widest: float = 1.0,
        neighbours: float = 0.0,
        background: bool = False,
        expected: bool = False,
    ) -> BandFlow:
        """Add a flow to the band, starting at `slot`; return the flow.

        Args:
            id_: name of the flow, unique in the band.
            snr_whole_band: mean SNR with full power over the whole band.
            fading: fading of the flow's link.
            most_snr: with resource blocks, highest mean SNR that power control allows on a block, > 0.
            widest: with resource blocks, largest part of the band that the flow's radio can use, > 0 and <= 1.
            neighbours: received power over noise of one share of the other transmitters, >= 0, with power `full`;
                with `per_resource_block` it must be 0, since the SNR already includes this power.
            background: whether the flow is background traffic, which some schedulers treat differently.
            expected: whether to check the flow without adding it, because `planned` will add it later.

        Raises:
            ValueError: an argument is out of range, the slot is past, `settle` has not yet returned a flow that ends
                before the slot, or the transfer would not end even if it had the band to itself.
        """
        if id_ in self._ids:
            raise ValueError(f"flow {id_!r} is already in the band: remove it first")
        need = self._band.need(payload_bits, snr_whole_band, neighbours)
        rest = fading, background, neighbours, most_snr, widest
        flow = BandFlow(id_, payload_bits, need, snr_whole_band, *rest)
        if not expected:
            self._join(flow, slot)
        return flow

    def planned(self, flows: Sequence[tuple[int, BandFlow]]) -> Iterator[tuple[int, list[Any]]]:
        """Serve expected flows in an empty band; yield slots, with the ids of the flows that end at each slot.

        Args:
            flows: the slot at which each flow joins, in ascending order, and the flow.
        """
        if isinstance(self._band, BlockRules) and self._band.alike and all(flow.need for _, flow in flows):
            sweep = BlockSweep(self._band, flows, self._state.sent)
            yield from sweep
            self._state = replace(self._state, slot=sweep.slot, sent=sweep.sent)
            self._sent |= sweep.sent_by()
            return
        for slot, flow in (*flows, (NEVER, None)):
            self._joins = slot
            while self.slot < slot and (due := self.next_end(self.horizon)) is not None:
                yield due[0], self.settle(due[0])
            if flow is not None:
                self._join(flow, slot)

    def _join(self, flow: BandFlow, slot: int) -> None:
        self._advance(slot)
        self._ids.add(flow.id)
        if flow.need == 0:
            self._done.append(flow)
            return
        self._flows = self._flows.joined_by(flow)
        self._state = self._state.with_new()
        self._plan = None

    def change(self, id_: Hashable, snr_whole_band: float, slot: int, most_snr: float = math.inf) -> None:
        """Set a flow's mean SNR, and its highest mean SNR on a resource block, starting at a slot boundary.

        Raises:
            ValueError: the flow is unknown, the SNR is not positive, the slot is past, or flows end before the slot.
        """
        check_snr(snr_whole_band)
        self._advance(slot)
        place = self._row(id_)
        flow = self._flows[place]
        flow.snr, flow.most = snr_whole_band, most_snr
        flow.blocks.clear()  # the flow's interference may have changed
        self._flows = self._flows.changed(place)
        self._plan = None

    def pause(self, slot: int, paused: bool) -> None:
        """Stop or resume serving flows at a slot boundary.

        Raises:
            ValueError: the slot is past, or flows end before the slot.
        """
        self._advance(slot)
        self._paused, self._plan = paused, None

    def next_end(self, horizon: int | None = None) -> tuple[int, list[Any]] | None:
        """Return the next slot boundary at which flows end if no flow joins or leaves, and the ids of these flows.

        Args:
            horizon: last slot to look ahead to; if flows join often, plans to a distant horizon soon become invalid.

        Returns:
            Slot at which flows end, and their ids in the order in which they joined; the horizon and no ids if no
            flow ends before the horizon; None if the band is empty or paused.

        Raises:
            ValueError: the horizon is past, or no flow would end within MAX_SLOTS.
        """
        if horizon is not None and horizon < self.slot:
            raise ValueError(f"horizon {horizon} is in the past: the band is settled up to slot {self.slot}")
        if self._done:
            return self.slot, [flow.id for flow in self._done]
        if not self._flows or self._paused:
            return None
        plan = self._look_ahead(horizon)
        end = plan.states[-1].slot
        if not plan.ended or (horizon is not None and end > horizon):
            assert horizon is not None  # without a horizon, the plan ends with a flow
            return horizon, []
        return end, [self._flows[i].id for i in plan.ended]

    @property
    def horizon(self) -> int:
        """Last slot to search for a flow's end, only a short way ahead: flows that join or leave invalidate plans."""
        far = self.slot + HORIZON_SLOTS
        if self._band.carrier.blocks:
            stride = self._glance(self._plan)
            far = self.slot + stride - self.slot % stride
        return min(far, max(self._joins, self.slot))

    def _glance(self, plan: _Plan | None) -> int:
        """Return how many slots to look ahead with resource blocks, which grows while no flow joins or leaves."""
        first = FIRST_LOOK_BY_SLOT if self._band.scheduler.per_slot else FIRST_LOOK
        return first if plan is None else min(MOST_AT_ONCE, first << plan.looks)

    def settle(self, slot: int) -> list[Any]:
        """Advance to a slot boundary; return the flows that have sent their payloads by then.

        Raises:
            ValueError: the slot is past, or flows end before the slot.
        """
        self._advance(slot)
        done, self._done = [flow.id for flow in self._done], []
        self._ids.difference_update(done)
        return done

    def moved_bits(self, id_: Hashable) -> float:
        """Return the bits that a flow has sent up to the settled slot.

        Raises:
            ValueError: the flow is unknown.
        """
        for flow in self._done:
            if flow.id == id_:
                return flow.payload_bits
        i = self._row(id_)
        bits = float(self._state.got[i]) * self._band.carrier.unit_bits
        # rounding must not complete a flow that lacks bits
        return min(bits, self._flows[i].payload_bits)

    def sent_by(self, id_: Hashable) -> tuple[float, float]:
        """Return the number of slots in which a former flow had blocks, and the sum of its power over these slots.

        The power is a fraction of the device's maximum. Both values are 0 in the downlink, and can be read only once.
        """
        on, at_power = self._sent.pop(id_, (0.0, 0.0))
        return on, at_power

    def remove(self, id_: Hashable, slot: int) -> float:
        """Remove a flow at a slot boundary; return its bits so far, or its payload if it was complete.

        Raises:
            ValueError: the flow is unknown, the slot is past, or flows end before the slot.
        """
        self._advance(slot)
        bits = self.moved_bits(id_)
        if any(flow.id == id_ for flow in self._done):
            self._done = [flow for flow in self._done if flow.id != id_]
        else:
            self._drop([self._row(id_)])
        self._ids.remove(id_)
        return bits

    def _row(self, id_: Hashable) -> int:
        for i, flow in enumerate(self._flows):
            if flow.id == id_:
                return i
        raise ValueError(f"no flow {id_!r} in the band, which has {[flow.id for flow in self._flows]}")

    def _drop(self, rows: list[int]) -> None:
        if self._band.carrier.blocks and self._band.carrier.power == "full":
            self._sent |= {
                self._flows[i].id: self._state.on[i].tolist() for i in rows if not self._flows[i].background
            }
        self._flows = self._flows.without(rows)
        self._state = self._state.without(rows)
        self._plan = None

    def _advance(self, slot: int) -> None:
        """Make `slot` the settled boundary; keep the plan unless a flow ends."""
        if slot < self.slot:
            raise ValueError(f"slot {slot} is in the past: the band is settled up to slot {self.slot}")
        if slot == self.slot:
            return
        if self._done:
            raise ValueError(
                f"flows {[flow.id for flow in self._done]} ended at slot {self.slot}: settle there first"
            )
        if not self._flows or self._paused:
            self._state = replace(self._state, slot=slot)
            return
        plan = self._look_ahead(slot)
        end = plan.states[-1].slot
        if plan.ended and end < slot:
            ids = [self._flows[i].id for i in plan.ended]
            raise ValueError(f"flows {ids} end at slot {end}, before slot {slot}: settle there first")
        later = bisect_right(plan.states, slot, key=lambda state: state.slot)
        self._state = plan.states[later - 1]
        if self._state.slot < slot:
            look = plan.states[later]
            self._state = self._band.within(self._flows, self._state, look, slot, plan.shares)
        plan.states[:later] = [self._state]
        if plan.ended and end == slot:
            self._done = [self._flows[i] for i in plan.ended]
            self._drop(plan.ended)

    def _look_ahead(self, horizon: int | None) -> _Plan:
        """Plan the flows' slots up to the horizon, or until the first flow ends."""
        if self._plan is None:
            state, shares = self._band.begin(self._flows, self._state)
            self._plan = _Plan(shares, [state])
        plan = self._plan
        while not plan.ended and (horizon is None or plan.states[-1].slot < horizon):
            state = plan.states[-1]
            if state.slot - self.slot >= MAX_SLOTS:
                raise ValueError(endless(f"{len(self._flows)} flows share the band", MAX_SLOTS))
            stride = self._stride(plan)
            # look up to the end of a block or stride, so that no block is read twice
            stop = state.slot + stride - state.slot % stride
            stop = min(stop, max(self._joins, state.slot + 1))
            state, plan.ended = self._band.run(self._flows, state, stop, plan.shares, self.slot)
            plan.looks += 1
            plan.states.append(state)
        return plan

    def _stride(self, plan: _Plan) -> int:
        """Return how many slots a plan looks ahead at once."""
        if self._band.carrier.blocks:
            return self._glance(plan)
        whole_blocks = plan.shares is not None and len(self._flows) * BLOCK <= _LARGEST_RUN
        return BLOCK if whole_blocks else _STRIDE
