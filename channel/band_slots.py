"""Run the flows that share a band from slot to slot; `shared_band` knows which flows are there, and when."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from edgefl.channel.carrier import MAX_SLOTS, Carrier, endless
from edgefl.channel.fading import BLOCK, Fading
from edgefl.channel.interference import Interfered
from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.units import FloatArray

# Blocks of fading that a flow keeps, so that planning anew draws nothing anew
_KEPT_BLOCKS = 3
# What rounding may add to a sum of shares
_SHARE_ROUNDING = 1e-9


@dataclass
class BandFlow:
    """One transfer in a shared band; the numbers that change are in BandState."""

    id: Hashable
    payload_bits: float
    need: float  # sum of bits/s/Hz over slots, on the whole band
    snr: float  # mean, on the whole band with full power
    fading: Fading
    static_power: float | None  # |h|^2 of a link that does not fade
    background: bool = False  # traffic that is not of learning
    neighbours: float = 0.0  # what each share of the other transmitters adds to the noise, over it
    blocks: dict[int, tuple[FloatArray, FloatArray | None]] = field(default_factory=dict)

    def power(self, first_slot: int, count: int, now: int, others: int = 1) -> FloatArray:
        """Read [count] |h|^2 within one block, over noise and interference if there is any.

        The blocks from `now` on are kept, and the one read last.

        Args:
            others: by how many times what is heard of other transmitters is above what the link knows.
        """
        if self.static_power is not None:
            return np.full(count, self.static_power)
        block, start = divmod(first_slot, BLOCK)
        if block not in self.blocks:
            self.blocks = {at: power for at, power in self.blocks.items() if at >= now // BLOCK}
            if len(self.blocks) == _KEPT_BLOCKS:
                del self.blocks[max(self.blocks)]
            self.blocks[block] = self._block(block * BLOCK)
        signal, over_noise = self.blocks[block]
        slots = slice(start, start + count)
        return signal[slots] if over_noise is None else signal[slots] / (1.0 + others * over_noise[slots])

    def _block(self, first_slot: int) -> tuple[FloatArray, FloatArray | None]:
        """Read a block of |h|^2, and of the interference over the noise if there is any."""
        if isinstance(self.fading, Interfered):
            return self.fading.parts(first_slot, BLOCK)
        return self.fading.power(first_slot, BLOCK), None


@dataclass(frozen=True)
class Groups:
    """Groups of flows, of which each has a part of the band: its weight over those of all that have a flow.

    of: id of a flow -> its group, from 0 on. weights: [groups] > 0.
    """

    of: Callable[[Hashable], int]
    weights: Sequence[float]

    def parts(self, of: npt.NDArray[np.intp]) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Return the rows of each group that has some, and its part of the band.

        Args:
            of: [n] the group of each flow.
        """
        there = np.unique(of).tolist()
        together = math.fsum(self.weights[group] for group in there)
        return [(np.flatnonzero(of == group), self.weights[group] / together) for group in there]


@dataclass
class BandState:
    """What the flows have at a slot boundary, [n] each; average and airtime are NaN until a flow begins."""

    slot: int
    sent: float  # slots of use, of all shares together and since the beginning
    got: FloatArray  # of the need
    average: FloatArray  # bits/s/Hz served, for schedulers with memory
    airtime: FloatArray  # slots served, for schedulers that decide in every slot
    sent_of: FloatArray  # [groups] as sent; each share counts by its power, as a part of one full power

    def with_new(self) -> "BandState":
        """Add a flow that has moved nothing yet."""
        got, average = np.append(self.got, 0.0), np.append(self.average, np.nan)
        return replace(self, got=got, average=average, airtime=np.append(self.airtime, np.nan))

    def without(self, rows: Sequence[int]) -> "BandState":
        """Take some flows out."""
        got, average = np.delete(self.got, rows), np.delete(self.average, rows)
        return replace(self, got=got, average=average, airtime=np.delete(self.airtime, rows))


@dataclass(frozen=True)
class BandRules:
    """Share a band among flows, and rate them; see `edgefl.channel.shared_band.SharedBand`."""

    scheduler: Scheduler
    carrier: Carrier
    groups: Groups | None = None

    def begin(self, flows: Sequence[BandFlow], state: BandState) -> tuple[BandState, FloatArray | None]:
        """Let new flows begin; return the state, and the shares if the scheduler holds them.

        Raises:
            ValueError: the scheduler gives wrong shares, or no flow would end within MAX_SLOTS.
        """
        view = self._view(flows, state)
        if self.scheduler.per_slot:
            new = np.isnan(state.airtime)
            average, airtime = state.average, state.airtime.copy()
            for rows, _ in self._parts(flows):
                least = 0.0 if new[rows].all() else np.nanmin(state.airtime[rows])
                airtime[rows] = np.where(new[rows], least, state.airtime[rows])
            if self.scheduler.memory is not None:
                others = np.empty(len(flows))
                for rows, part in self._parts(flows):
                    others[rows] = len(rows) / part
                average = np.where(new, view.mean_rate(1.0) / others, average)
            return replace(state, average=average, airtime=airtime), None

        shares = self._checked(self._shares(self._parts(flows), view), len(flows))
        # no less than the mean rates (Jensen)
        rates = self.carrier.frame.mean * self.carrier.share_rate(shares, view.snr)
        # where rates come in steps, flows below the lowest wait for better times
        if self.carrier.steps is None and not np.any(
            view.remaining_bits <= MAX_SLOTS * self.carrier.unit_bits * rates
        ):
            raise ValueError(endless(f"{len(flows)} flows share the band", MAX_SLOTS))
        return state, shares

    def run(
        self, flows: Sequence[BandFlow], state: BandState, stop: int, shares: FloatArray | None, now: int
    ) -> tuple[BandState, list[int]]:
        """Go on to slot `stop`, in the block of state.slot, or the first end; return the state and ended rows."""
        if shares is None:
            return self._run_by_slot(flows, state, stop, now)
        in_use = int(np.count_nonzero(shares))
        power = self._power(flows, state.slot, stop - state.slot, now, in_use)
        snr = self.carrier.share_snr(shares, _snr(flows, in_use))
        rates = shares[:, None] * self.carrier.efficiency(snr[:, None] * power)
        if not self.carrier.frame.plain:
            rates *= self.carrier.frame.weights_from(state.slot, power.shape[1])
        # carried on in order, so that rounding does not depend on where a run begins
        rates[:, 0] += state.got
        totals = np.cumsum(rates, axis=1)
        need = _need(flows)
        complete = np.flatnonzero(totals[:, -1] >= need)
        last = min((int(np.searchsorted(totals[i], need[i])) for i in complete), default=power.shape[1] - 1)
        got = totals[:, last].copy()
        airtime = self.carrier.frame.airtime(state.slot, last + 1)
        sent = state.sent + in_use * airtime
        sent_of = self._sent_of(state.sent_of, self._of(flows), shares, airtime)
        ended = np.flatnonzero(got >= need).tolist()
        return replace(state, slot=state.slot + last + 1, sent=sent, got=got, sent_of=sent_of), ended

    def _of(self, flows: Sequence[BandFlow]) -> npt.NDArray[np.intp]:
        """Return [n] the group of each flow; without groups all are of one."""
        if self.groups is None:
            return np.zeros(len(flows), dtype=np.intp)
        return np.array([self.groups.of(flow.id) for flow in flows], dtype=np.intp)

    def _parts(self, flows: Sequence[BandFlow]) -> list[tuple[npt.NDArray[np.intp], float]]:
        """Return the rows of the flows of each group, and its part of the band."""
        if self.groups is None:
            return [(np.arange(len(flows)), 1.0)]
        return self.groups.parts(self._of(flows))

    def _shares(self, parts: Sequence[tuple[npt.NDArray[np.intp], float]], view: Flows) -> FloatArray:
        """Let the scheduler share the band, or within each of several groups its part of it."""
        if len(parts) < 2:
            return self.scheduler.shares(view)
        shares = np.zeros(len(view))
        for rows, part in parts:
            shares[rows] = part * self.scheduler.shares(view.some(rows, part))
        return shares

    def _sent_of(
        self, sent_of: FloatArray, of: npt.NDArray[np.intp], shares: FloatArray, airtime: float
    ) -> FloatArray:
        """Return [groups] what each has sent when these shares have been in use for an airtime more."""
        if self.groups is None:
            return sent_of
        by_power = (shares > 0).astype(float) if self.carrier.power == "full" else shares
        return sent_of + airtime * np.bincount(of, by_power, minlength=len(sent_of))

    def _power(
        self, flows: Sequence[BandFlow], first_slot: int, count: int, now: int, in_use: int
    ) -> FloatArray:
        """Read [n, count] the power of flows, while this many shares are in use everywhere."""
        # with full power on a share as large as one of these, another is heard the more, the smaller it is
        others = in_use if self.carrier.power == "full" else 1
        return np.stack([flow.power(first_slot, count, now, others) for flow in flows])

    def _run_by_slot(
        self, flows: Sequence[BandFlow], state: BandState, stop: int, now: int
    ) -> tuple[BandState, list[int]]:
        """Do what `run` does, with a scheduler that decides in every slot."""
        power = self._power(flows, state.slot, stop - state.slot, now, 1)
        snr = _snr(flows, 1)[:, None] * power
        efficiency = np.ascontiguousarray(self.carrier.efficiency(snr).T)
        need, memory, unit_bits = _need(flows), self.scheduler.memory, self.carrier.unit_bits
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
                # one flow has the whole band: nearly always, and a third of the time
                served, rate = first, efficiency[i, first]
                sent += weight
            else:
                served = everyone
                shares = self._checked(shares, len(flows))
                in_use = int(np.count_nonzero(shares))
                shared = power[:, i]
                if self.carrier.power == "full":  # others are heard the more, the more shares are in use
                    shared = self._power(flows, view.slot, 1, now, in_use)[:, 0]
                rate = self.carrier.share_rate(shares, _snr(flows, in_use) * shared)
                sent += weight * in_use
            if self.groups is not None:
                sent_of = self._sent_of(sent_of, of, shares, weight)
            got[served] += weight * rate
            airtime[served] += weight * shares[served]
            missing = need[served] - got[served]
            view.remaining_bits[served] = missing * unit_bits
            if memory is not None:
                # a special slot forgets as much as it lasts
                decay = memory**weight
                average *= decay
                average[served] += (1.0 - decay) * rate
            if missing.min() <= 0.0:
                ended = np.flatnonzero(got >= need).tolist()
                return BandState(view.slot + 1, sent, got, average, airtime, sent_of), ended
        return BandState(state.slot + power.shape[1], sent, got, average, airtime, sent_of), []

    def _checked(self, shares: FloatArray, flows: int) -> FloatArray:
        """Return the shares if they are valid: one per flow, >= 0, and together not more than the band."""
        if shares.shape != (flows,) or not np.all(shares >= 0):
            raise ValueError(f"{self.scheduler} must give each of {flows} flows a share >= 0, got {shares}")
        if shares.sum() > 1.0 + _SHARE_ROUNDING:
            raise ValueError(f"{self.scheduler} gives away {shares.sum()} of the band, more than there is")
        return shares

    def _view(self, flows: Sequence[BandFlow], state: BandState) -> Flows:
        """Show the flows at a slot boundary to a scheduler."""
        static_power = [flow.static_power for flow in flows]
        # a scheduler that decides in every slot sees each flow alone, the others one share for each flow
        in_use = 1 if self.scheduler.per_slot else len(flows)
        return Flows(
            self.carrier,
            snr=_snr(flows, in_use) * [1.0 if power is None else power for power in static_power],
            remaining_bits=(_need(flows) - state.got) * self.carrier.unit_bits,
            static=np.array([power is not None for power in static_power]),
            slot=state.slot,
            background=np.array([flow.background for flow in flows]),
        )


def check_neighbours(neighbours: float, carrier: Carrier) -> None:
    """Refuse interference that is not a power, or does not grow with the number of shares.

    Raises:
        ValueError: it is negative or not finite, or the carrier's power is not `full`.
    """
    if not 0 <= neighbours < math.inf:
        raise ValueError(f"neighbours must be >= 0 and finite, got {neighbours}")
    if neighbours and carrier.power != "full":
        raise ValueError(f"with power {carrier.power} neighbours belong into the snr, got {neighbours}")


def _snr(flows: Sequence[BandFlow], in_use: int) -> FloatArray:
    """Return [n] the SNR on the whole band with full power, while this many shares are in use everywhere."""
    return np.array([flow.snr / (1.0 + in_use * flow.neighbours) for flow in flows])


def _need(flows: Sequence[BandFlow]) -> FloatArray:
    return np.array([flow.need for flow in flows])
