"""How flows that share a band go on from slot to slot; `channel.shared_band` knows who is there, and when."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from channel.fading import BLOCK, LinkFading
from channel.limits import MAX_SLOTS, endless
from channel.ofdma import PowerRule, share_rate, share_snr, spectral_efficiency
from channel.schedulers import Flows, Scheduler
from channel.tdd import Frame
from channel.units import FloatArray

# Blocks of fading that a flow keeps, so that planning anew draws nothing anew
_KEPT_BLOCKS = 3
# What rounding may add to a sum of shares
_SHARE_ROUNDING = 1e-9


@dataclass
class Flow:
    """One transfer in the band; the numbers that change are in State."""

    id: Hashable
    payload_bits: float
    need: float  # sum of bits/s/Hz over slots, on the whole band
    snr: float  # mean, on the whole band with full power
    fading: LinkFading
    static_power: float | None  # |h|^2 of a link that does not fade
    blocks: dict[int, FloatArray] = field(default_factory=dict)

    def power(self, first_slot: int, count: int, now: int) -> FloatArray:
        """[count] |h|^2, within one block. Keeps the next blocks from now on, and the one read last."""
        if self.static_power is not None:
            return np.full(count, self.static_power)
        block, start = divmod(first_slot, BLOCK)
        if block not in self.blocks:
            self.blocks = {at: power for at, power in self.blocks.items() if at >= now // BLOCK}
            if len(self.blocks) == _KEPT_BLOCKS:
                del self.blocks[max(self.blocks)]
            self.blocks[block] = self.fading.power(block * BLOCK, BLOCK)
        return self.blocks[block][start : start + count]


@dataclass
class State:
    """What the flows have at a slot boundary, [n] each; average and airtime are NaN until a flow begins."""

    slot: int
    got: FloatArray  # of the need
    average: FloatArray  # bits/s/Hz served, for schedulers with memory
    airtime: FloatArray  # slots served, for schedulers that decide in every slot

    def with_new(self) -> "State":
        """One more flow, which has nothing yet."""
        return State(
            self.slot,
            np.append(self.got, 0.0),
            np.append(self.average, np.nan),
            np.append(self.airtime, np.nan),
        )

    def without(self, rows: Sequence[int]) -> "State":
        """Less some flows."""
        return State(
            self.slot,
            np.delete(self.got, rows),
            np.delete(self.average, rows),
            np.delete(self.airtime, rows),
        )


@dataclass(frozen=True)
class Band:
    """The band in one direction of a cell, and its rules; see `channel.shared_band.SharedBand`."""

    scheduler: Scheduler
    bandwidth_hz: float
    slot_s: float
    frame: Frame
    power: PowerRule
    cap: float | None

    @property
    def unit_bits(self) -> float:
        """Bits that 1 bit/s/Hz on the whole band moves in a slot."""
        return self.bandwidth_hz * self.slot_s

    def begin(self, flows: Sequence[Flow], state: State) -> tuple[State, FloatArray | None]:
        """The state in which new flows have begun, and the shares if the scheduler holds them.

        Raises:
            ValueError: the scheduler's shares are none, or no flow would end within MAX_SLOTS.
        """
        view = self._view(flows, state)
        if self.scheduler.per_slot:
            new = np.isnan(state.airtime)
            least = 0.0 if new.all() else np.nanmin(state.airtime)
            average = state.average
            if self.scheduler.memory is not None:
                average = np.where(new, view.mean_rate(1.0) / len(flows), average)
            return replace(state, average=average, airtime=np.where(new, least, state.airtime)), None

        shares = self._checked(self.scheduler.shares(view), len(flows))
        # no less than the mean rates (Jensen)
        rates = self.frame.mean * share_rate(shares, view.snr, power=self.power, cap=self.cap)
        if not np.any(view.remaining_bits <= MAX_SLOTS * self.unit_bits * rates):
            raise ValueError(endless(f"{len(flows)} flows share the band", MAX_SLOTS))
        return state, shares

    def run(
        self, flows: Sequence[Flow], state: State, stop: int, shares: FloatArray | None, now: int
    ) -> tuple[State, list[int]]:
        """The state at slot `stop`, in the block of state.slot, or where flows end before it; and these."""
        power = np.stack([flow.power(state.slot, stop - state.slot, now) for flow in flows])
        if shares is None:
            return self._run_by_slot(flows, state, power)
        snr = share_snr(shares, _snr(flows), self.power)
        rates = shares[:, None] * spectral_efficiency(snr[:, None] * power, self.cap)
        if not self.frame.plain:
            rates *= self.frame.of(state.slot, power.shape[1])
        # carried on in order, so that rounding does not depend on where a run begins
        rates[:, 0] += state.got
        totals = np.cumsum(rates, axis=1)
        need = _need(flows)
        complete = np.flatnonzero(totals[:, -1] >= need)
        if not complete.size:
            return replace(state, slot=stop, got=totals[:, -1].copy()), []
        last = min(int(np.searchsorted(totals[i], need[i])) for i in complete)
        got = totals[:, last].copy()
        return replace(state, slot=state.slot + last + 1, got=got), np.flatnonzero(got >= need).tolist()

    def _run_by_slot(self, flows: Sequence[Flow], state: State, power: FloatArray) -> tuple[State, list[int]]:
        """`run` with a scheduler that decides in every slot."""
        snr = _snr(flows)[:, None] * power
        efficiency = np.ascontiguousarray(spectral_efficiency(snr, self.cap).T)
        need, memory, unit_bits = _need(flows), self.scheduler.memory, self.unit_bits
        got, average, airtime = state.got.copy(), state.average.copy(), state.airtime.copy()
        view = self._view(flows, state)
        view.average, view.airtime = average, airtime
        everyone = slice(None)
        served: np.intp | slice
        for i, weight in enumerate(self.frame.of(state.slot, power.shape[1]).tolist()):
            if weight == 0.0:
                continue
            view.slot, view.efficiency = state.slot + i, efficiency[i]
            shares = self.scheduler.shares(view)
            first = shares.argmax()
            if shares[first] == 1.0 and np.count_nonzero(shares) == 1:
                # one flow has the whole band: nearly always, and a third of the time
                served, rate = first, efficiency[i, first]
            else:
                served = everyone
                shares = self._checked(shares, len(flows))
                rate = share_rate(shares, snr[:, i], power=self.power, cap=self.cap)
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
                return State(view.slot + 1, got, average, airtime), ended
        return State(state.slot + power.shape[1], got, average, airtime), []

    def _checked(self, shares: FloatArray, flows: int) -> FloatArray:
        """The scheduler's shares, if they are some."""
        if shares.shape != (flows,) or not np.all(shares >= 0):
            raise ValueError(f"{self.scheduler} must give each of {flows} flows a share >= 0, got {shares}")
        if shares.sum() > 1.0 + _SHARE_ROUNDING:
            raise ValueError(f"{self.scheduler} gives away {shares.sum()} of the band, more than there is")
        return shares

    def _view(self, flows: Sequence[Flow], state: State) -> Flows:
        """The flows at a slot boundary, as a scheduler sees them."""
        static_power = [flow.static_power for flow in flows]
        return Flows(
            snr=_snr(flows) * [1.0 if power is None else power for power in static_power],
            remaining_bits=(_need(flows) - state.got) * self.unit_bits,
            static=np.array([power is not None for power in static_power]),
            power=self.power,
            cap=self.cap,
            slot=state.slot,
        )


def _snr(flows: Sequence[Flow]) -> FloatArray:
    return np.array([flow.snr for flow in flows])


def _need(flows: Sequence[Flow]) -> FloatArray:
    return np.array([flow.need for flow in flows])
