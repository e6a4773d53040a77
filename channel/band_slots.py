"""Serve flows that share a band, slot by slot; `shared_band` decides which flows are active."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.band_flows import BandFlows
from edgefl.channel.carrier import MAX_SLOTS, Carrier, check_snr, endless
from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.units import FloatArray

NEVER = 2**62  # a slot beyond the end of any run
# Initial state of a flow, before it starts sending
_ZERO, _NAN, _NONE = np.zeros(1), np.array((np.nan,)), np.zeros((1, 2))


@dataclass(frozen=True)
class Groups:
    """Groups of flows that divide the band by weight; a group without flows gets no part.

    of: id of a flow -> index of its group. weights: [groups] weight of each group, > 0.
    """

    of: Callable[[Hashable], int]
    weights: Sequence[float]

    def parts(self, of: npt.NDArray[np.intp]) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Return the rows of each group that has flows, and the group's part of the band.

        Args:
            of: [n] group of each flow.
        """
        there = np.unique(of).tolist()
        together = math.fsum(self.weights[group] for group in there)
        return [(np.flatnonzero(of == group), self.weights[group] / together) for group in there]


@dataclass
class BandState:
    """The state of [n] flows at a slot boundary; a flow's average and airtime are nan until the flow begins.

    seen: slot-by-slot results of the look-ahead that ends at this boundary, if the rules store them.
    """

    slot: int
    sent: float  # slots used since the beginning, summed over shares
    got: FloatArray  # part of `need` that has been served
    average: FloatArray  # bits/s/Hz served, for schedulers with memory
    airtime: FloatArray  # slots served, for schedulers that decide in every slot
    sent_of: FloatArray  # [groups] like `sent`, but each share is weighted by its power over full power
    on: FloatArray  # [n, 2] for flows on resource blocks: slots with blocks, and these slots weighted by power
    seen: Any = None

    def with_new(self) -> "BandState":
        """Append the state of a flow that has not sent any bits yet."""
        got, on = np.concatenate([self.got, _ZERO]), np.concatenate([self.on, _NONE])
        average, airtime = np.concatenate([self.average, _NAN]), np.concatenate([self.airtime, _NAN])
        return BandState(self.slot, self.sent, got, average, airtime, self.sent_of, on, self.seen)

    def without(self, rows: Sequence[int]) -> "BandState":
        """Remove the state of the flows in the given rows."""
        stay = np.ones(len(self.got), dtype=bool)
        stay[rows] = False
        got, average, airtime, on = self.got[stay], self.average[stay], self.airtime[stay], self.on[stay]
        return BandState(self.slot, self.sent, got, average, airtime, self.sent_of, on, self.seen)


@dataclass(frozen=True)
class BandRules:
    """Divide a band among flows, and compute their rates; see `edgefl.channel.shared_band.SharedBand`."""

    scheduler: Scheduler
    carrier: Carrier
    groups: Groups | None = None

    def need(self, payload_bits: float, snr: float, neighbours: float) -> float:
        """Check these arguments of `SharedBand.add`; return the flow's sum of bits/s/Hz over slots.

        Raises:
            ValueError: an argument is out of range, or the transfer would not end even if it had the band to itself.
        """
        check_snr(snr)
        _check_neighbours(neighbours, self.carrier)
        need = self.carrier.need(payload_bits)
        self.carrier.refuse_endless(need, snr)
        return need

    def begin(self, flows: BandFlows, state: BandState) -> tuple[BandState, FloatArray | None]:
        """Start new flows; return the state, and the shares if the scheduler keeps them constant.

        Raises:
            ValueError: the scheduler returns invalid shares, or no flow would end within MAX_SLOTS.
        """
        view = self._view(flows, state)
        if self.scheduler.per_slot:
            return self._started(flows, state, view.mean_rate(1.0)), None

        shares = self._checked(self._shares(self._parts(flows), view), len(flows))
        # an upper bound on the mean rates (Jensen)
        rates = self.carrier.frame.mean * self.carrier.share_rate(shares, view.snr)
        # not a bound with a rate table: fading occasionally lifts a flow from below the lowest step to above it
        if self.carrier.steps is None and not np.any(
            view.remaining_bits <= MAX_SLOTS * self.carrier.unit_bits * rates
        ):
            raise ValueError(endless(f"{len(flows)} flows share the band", MAX_SLOTS))
        return state, shares

    def run(
        self, flows: BandFlows, state: BandState, stop: int, shares: FloatArray | None, now: int
    ) -> tuple[BandState, list[int]]:
        """Advance to slot `stop` in the block of state.slot, or to the first end of a flow; return state and ends."""
        if shares is None:
            return self._run_by_slot(flows, state, stop, now)
        in_use = int(np.count_nonzero(shares))
        power = self._power(flows, state.slot, stop - state.slot, now, in_use)
        snr = self.carrier.share_snr(shares, flows.snr_beside(in_use))
        rates = shares[:, None] * self.carrier.efficiency(snr[:, None] * power)
        if not self.carrier.frame.plain:
            rates *= self.carrier.frame.weights_from(state.slot, power.shape[1])
        # sum in order, so that rounding does not depend on where a run begins
        rates[:, 0] += state.got
        totals = np.cumsum(rates, axis=1)
        need = flows.need
        complete = np.flatnonzero(totals[:, -1] >= need)
        last = min((int(np.searchsorted(totals[i], need[i])) for i in complete), default=power.shape[1] - 1)
        got = totals[:, last].copy()
        airtime = self.carrier.frame.airtime(state.slot, last + 1)
        sent = state.sent + in_use * airtime
        sent_of = self._sent_of(state.sent_of, self._of(flows), shares, airtime)
        ended = np.flatnonzero(got >= need).tolist()
        return replace(state, slot=state.slot + last + 1, sent=sent, got=got, sent_of=sent_of), ended

    def within(
        self,
        flows: BandFlows,
        state: BandState,
        look: BandState,
        stop: int,
        shares: FloatArray | None,
    ) -> BandState:
        """Advance to slot `stop`, which lies within the slots that `run` has looked ahead, before any flow ends."""
        return self.run(flows, state, stop, shares, state.slot)[0]

    def _started(self, flows: BandFlows, state: BandState, rates: FloatArray) -> BandState:
        """Return the state with new flows' average and airtime set, if the scheduler decides in every slot.

        Args:
            rates: [n] mean bit/s/Hz of each flow if the flow were alone in the band.
        """
        new = np.isnan(state.airtime)
        average, airtime = state.average, state.airtime.copy()
        for rows, _ in self._parts(flows):
            least = 0.0 if new[rows].all() else np.nanmin(state.airtime[rows])
            airtime[rows] = np.where(new[rows], least, state.airtime[rows])
        if self.scheduler.memory is not None:
            others = np.empty(len(flows))
            for rows, part in self._parts(flows):
                others[rows] = len(rows) / part
            average = np.where(new, rates / others, average)
        return replace(state, average=average, airtime=airtime)

    def _of(self, flows: BandFlows) -> npt.NDArray[np.intp]:
        """Return the group [n] of each flow; 0 without groups."""
        if self.groups is None:
            return np.zeros(len(flows), dtype=np.intp)
        return np.array([self.groups.of(flow.id) for flow in flows], dtype=np.intp)

    def _parts(self, flows: BandFlows) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Return each group's rows and its part of the band."""
        if self.groups is None:
            return [(np.arange(len(flows)), 1.0)]
        return self.groups.parts(self._of(flows))

    def _shares(self, parts: Sequence[tuple[npt.NDArray[np.intp], float]], view: Flows) -> FloatArray:
        """Return the scheduler's shares of the band, or of each group's part of the band."""
        if len(parts) < 2:
            return self._shaped(self.scheduler.shares(view), len(view))
        shares = np.zeros(len(view))
        for rows, part in parts:
            shares[rows] = part * self._shaped(self.scheduler.shares(view.some(rows, part)), len(rows))
        return shares

    def _shaped(self, shares: FloatArray, flows: int) -> FloatArray:
        """Return the scheduler's shares after checking that there is one per flow."""
        if getattr(shares, "shape", None) != (flows,):
            raise ValueError(
                f"{self._method} must give each of {flows} flows a share >= 0, got {shares!r:.200}"
            )
        return shares

    @property
    def _method(self) -> str:
        return f"{type(self.scheduler).__module__}:{type(self.scheduler).__name__}.shares()"

    def _sent_of(
        self, sent_of: FloatArray, of: npt.NDArray[np.intp], shares: FloatArray, airtime: float
    ) -> FloatArray:
        """Return the airtime [groups] after these shares have been in use for another `airtime`."""
        if self.groups is None:
            return sent_of
        by_power = (shares > 0).astype(float) if self.carrier.power == "full" else shares
        return sent_of + airtime * np.bincount(of, by_power, minlength=len(sent_of))

    def _power(self, flows: BandFlows, first_slot: int, count: int, now: int, in_use: int) -> FloatArray:
        """Return the fading power [n, count] of flows while `in_use` shares are in use in every cell."""
        # full power concentrated on one of n shares makes interference n times as strong on that share
        others = in_use if self.carrier.power == "full" else 1
        return np.stack([flow.power(first_slot, count, now, others) for flow in flows])

    def _run_by_slot(
        self, flows: BandFlows, state: BandState, stop: int, now: int
    ) -> tuple[BandState, list[int]]:
        """Implement `run` for a scheduler that decides in every slot."""
        power = self._power(flows, state.slot, stop - state.slot, now, 1)
        snr = flows.snr_beside(1)[:, None] * power
        efficiency = np.ascontiguousarray(self.carrier.efficiency(snr).T)
        need, memory, unit_bits = flows.need, self.scheduler.memory, self.carrier.unit_bits
        sent, got, average, airtime = state.sent, state.got.copy(), state.average.copy(), state.airtime.copy()
        sent_of, parts, of = state.sent_of, self._parts(flows), self._of(flows)
        view = self._view(flows, state)
        view.average, view.airtime = average, airtime
        everyone = slice(None)
        served: np.intp | slice
        for i, weight in enumerate(self.carrier.frame.weights_from(state.slot, power.shape[1]).tolist()):
            if weight == 0.0:
                continue
            view.slot, view.efficiency = state.slot + i, efficiency[i]
            shares = self._shares(parts, view)
            first = shares.argmax()
            if shares[first] == 1.0 and np.count_nonzero(shares) == 1:
                # usually one flow has the whole band; this branch computes that case three times as fast
                served, rate = first, efficiency[i, first]
                sent += weight
            else:
                served = everyone
                shares = self._checked(shares, len(flows))
                in_use = int(np.count_nonzero(shares))
                shared = power[:, i]
                if self.carrier.power == "full":  # interference grows with the number of shares in use
                    shared = self._power(flows, view.slot, 1, now, in_use)[:, 0]
                rate = self.carrier.share_rate(shares, flows.snr_beside(in_use) * shared)
                sent += weight * in_use
            if self.groups is not None:
                sent_of = self._sent_of(sent_of, of, shares, weight)
            got[served] += weight * rate
            airtime[served] += weight * shares[served]
            missing = need[served] - got[served]
            view.remaining_bits[served] = missing * unit_bits
            if memory is not None:
                # a special slot counts in proportion to its length
                decay = memory**weight
                average *= decay
                average[served] += (1.0 - decay) * rate
            if missing.min() <= 0.0:
                ended = np.flatnonzero(got >= need).tolist()
                return BandState(view.slot + 1, sent, got, average, airtime, sent_of, state.on), ended
        return BandState(state.slot + power.shape[1], sent, got, average, airtime, sent_of, state.on), []

    def _checked(self, shares: FloatArray, flows: int) -> FloatArray:
        """Return the shares after checking them: one per flow, >= 0, with a sum of at most 1."""
        shares = self.scheduler.checked(shares, flows)
        if flows and not self.scheduler.per_slot and not shares.any():  # these shares stay until a flow ends
            raise ValueError(
                f"{self._method} must give some flow a share > 0, or no transfer ends; got {shares}"
            )
        return shares

    def _view(self, flows: BandFlows, state: BandState) -> Flows:
        """Return the scheduler's view of the flows at a slot boundary."""
        # per-slot schedulers compare flows as if each were alone in the band; others assume a share for each flow
        in_use = 1 if self.scheduler.per_slot else len(flows)
        return Flows(
            self.carrier,
            snr=flows.snr_beside(in_use) * flows.held_power,
            remaining_bits=(flows.need - state.got) * self.carrier.unit_bits,
            static=flows.static,
            slot=state.slot,
            background=flows.background,
        )


def _check_neighbours(neighbours: float, carrier: Carrier) -> None:
    """Raise an error if interference is not a valid power, or does not grow with the number of shares.

    Raises:
        ValueError: interference is negative or not finite, or the carrier's power rule is not `full`.
    """
    if not 0 <= neighbours < math.inf:
        raise ValueError(f"neighbours must be >= 0 and finite, got {neighbours}")
    if neighbours and carrier.power != "full":
        raise ValueError(
            f"with power {carrier.power}, neighbours must be 0 (snr includes interference), got {neighbours}"
        )
