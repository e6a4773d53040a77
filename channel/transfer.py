"""Count the slots of a transfer.

A transfer of Z bits that begins in slot n0 ends in the first slot in which the bits sent reach Z. Slots are counted
from the simulation's start. With the weights of a TDD frame (`edgefl.channel.tdd`), slot n carries a fraction w_n of
a full slot's bits; without weights, the transfer uses every slot of its own interval (the journal paper's TDD). There
are three fidelities: `slot` draws every slot and is exact; `renewal` draws the number of slots directly; `auto` uses
renewal where renewal is accurate enough.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from edgefl.channel.carrier import MAX_SLOTS, Carrier, check_snr, endless
from edgefl.channel.fading import BLOCK, Fading
from edgefl.channel.rates import rate_moments_of
from edgefl.channel.renewal import slots_renewal
from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray, Values

__all__ = ["Flow"]

Fidelity = Literal["slot", "renewal", "auto"]

_FIDELITIES = get_args(Fidelity)

# `auto` draws every slot of a transfer that is expected to be shorter than this ...
AUTO_SLOTS = 4000
# ... or than this many coherence times 1 / (1 - rho), since renewal's normal approximation needs both conditions
AUTO_COHERENCE_TIMES = 50

# Maximum number of blocks read at a time; results do not depend on it.
CHUNK_BLOCKS = 8

# Numbers of renewal's random streams
_STREAMS: dict[Direction, int] = {"downlink": 0, "uplink": 1}
# a single generator that is reset for each renewal
_REUSED = np.random.Generator(np.random.Philox())


@dataclass(frozen=True)
class Flow:
    """A link and its share of the band, beginning at a slot; validated once, on construction.

    The slots of a transfer are a function of these parameters and the payload, in every fidelity.

    Args:
        carrier: the link's share of the band.
        snr: linear mean SNR on that share, before fading, > 0.
        fading: fading of the link; a static link is solved in closed form in every fidelity.
        first_slot: first slot n0 of the transfer, >= 0.
        direction: direction of the transfer; renewal draws different numbers in each direction.
        fidelity: way of counting slots: slot, renewal or auto.

    Raises:
        ValueError: an argument is out of range.
    """

    carrier: Carrier
    snr: float
    fading: Fading
    first_slot: int
    direction: Direction = "downlink"
    fidelity: Fidelity = "auto"

    def __post_init__(self) -> None:
        check_snr(self.snr)
        check_choices(self.direction, self.fidelity)

    def slots(self, payload_bits: float) -> int:
        """Count the slots of a transfer.

        `slot` is `slots_exact`; `renewal` is `edgefl.channel.renewal.slots_renewal` with a draw that depends on link,
        first slot and direction. `auto` is `renewal` for a transfer that is expected to last AUTO_SLOTS slots and
        AUTO_COHERENCE_TIMES coherence times of the fading, and that has at least AUTO_COHERENCE_TIMES
        `exponential_draws` (unless the carrier is plain); otherwise `auto` is `slot`.

        Raises:
            ValueError: the payload is out of range, or the transfer would take more than MAX_SLOTS.
        """
        if not self.by_renewal(payload_bits):
            return self.slots_exact(payload_bits)
        return slots_renewal(
            payload_bits,
            self.carrier,
            snr=self.snr,
            correlation=self.fading.correlation,
            rng=self.fading.generator(self.first_slot, _STREAMS[self.direction], _REUSED),
            first_slot=self.first_slot,
        )

    def slots_exact(self, payload_bits: float, max_slots: int = MAX_SLOTS) -> int:
        """Return the smallest n with sum of w W min(log2(1 + snr |h|^2), cap) tau over n slots >= Z.

        Args:
            payload_bits: number of bits Z to transfer, >= 0.

        Returns:
            Number of slots, including those in which the frame serves the other direction; 0 for an empty payload.

        Raises:
            ValueError: the payload is out of range, or the transfer would take more than max_slots.

        Source: journal paper, eq. (26). Left out: control channels, coding, and retransmissions.
        """
        need = self.carrier.need(payload_bits)
        if self.fading.static:
            return self._slots_static(need, max_slots)
        if need == 0:
            return 0
        self.carrier.refuse_endless(need, self.snr)
        for slots, totals in self._running_totals(max_slots):
            if totals[-1] >= need:
                return slots + int(np.searchsorted(totals, need)) + 1
        raise ValueError(endless("they did not carry the payload", max_slots))

    def bits(self, slots: int, payload_bits: float) -> float:
        """Return the bits that a transfer has sent when it is cut off after `slots` slots, at most the payload.

        If slots are drawn one by one, these are the bits that the slots carried; with renewal, they are the payload
        times the slots' share of the transfer's airtime.

        Raises:
            ValueError: an argument is out of range.
        """
        if not self.by_renewal(payload_bits):
            return min(self.bits_carried(slots), payload_bits)
        if slots < 0:
            raise ValueError(f"slots must be >= 0, got {slots}")
        whole = self.slots(payload_bits)
        if whole == 0:
            return 0.0
        frame = self.carrier.frame
        return payload_bits * min(
            1.0, frame.airtime(self.first_slot, slots) / frame.airtime(self.first_slot, whole)
        )

    def bits_carried(self, slots: int) -> float:
        """Return the bits that the link carries in `slots` slots, read slot by slot.

        Raises:
            ValueError: slots is negative.
        """
        if slots < 0:
            raise ValueError(f"slots must be >= 0, got {slots}")
        if self.fading.static:
            return (
                self.carrier.unit_bits
                * self.carrier.frame.airtime(self.first_slot, slots)
                * self._static_rate()
            )
        total = 0.0
        for _, totals in self._running_totals(slots):
            total = float(totals[-1])
        return self.carrier.unit_bits * total

    def expected_slots(self, payload_bits: float) -> float:
        """Return the unrounded number of slots of a transfer at the ergodic rate, need / mu with need = Z / (W tau).

        Raises:
            ValueError: the payload is out of range.
        """
        need = self.carrier.need(payload_bits)
        return need / (float(self.carrier.mean_efficiency(float(self.snr))) * self.carrier.frame.mean)

    def by_renewal(self, payload_bits: float) -> bool:
        """Return whether the number of slots of a transfer is drawn directly.

        Raises:
            ValueError: the payload is out of range.
        """
        if self.fading.static or self.fidelity == "slot" or not self.fading.renews:
            return False
        if self.fidelity == "renewal":
            return True
        expected, correlation = self.expected_slots(payload_bits), self.fading.correlation
        return long_enough(expected, correlation) and (
            self.carrier.plain
            or exponential_draws(expected, *rate_moments_of(float(self.snr), correlation, self.carrier))
            >= AUTO_COHERENCE_TIMES
        )

    def _running_totals(self, count: int) -> Iterator[tuple[int, FloatArray]]:
        """Yield for each chunk the number of slots before it, and cumulative sums of w min(log2(1 + snr |h|^2), cap).

        Sums continue from chunk to chunk in order, so that rounding does not depend on the chunks.
        """
        frame = self.carrier.frame
        total, done, blocks = 0.0, 0, 1
        while done < count:
            at = self.first_slot + done
            # read to the end of a block, so that no block is drawn twice
            chunk = min(blocks * BLOCK - at % BLOCK, count - done)
            rates = self.carrier.efficiency(self.snr * self.fading.power(at, chunk))
            if not frame.plain:
                rates *= frame.weights_from(at, chunk)
            rates[0] += total
            totals = np.cumsum(rates)
            yield done, totals
            total, done, blocks = float(totals[-1]), done + chunk, min(2 * blocks, CHUNK_BLOCKS)

    def _static_rate(self) -> float:
        return float(self.carrier.efficiency(self.snr * self.fading.power(0, 1)[0]))

    def _slots_static(self, need: float, max_slots: int) -> int:
        if need == 0:
            return 0
        rate, frame, first_slot = self._static_rate(), self.carrier.frame, self.first_slot
        if need > rate * frame.airtime(first_slot, max_slots):
            raise ValueError(endless(f"a static link at {rate:g} bits/s/Hz", max_slots))
        slots = frame.slots(first_slot, need / rate)
        # rounding in the division may have crossed a slot boundary
        while frame.airtime(first_slot, slots) * rate < need:
            slots += 1
        while frame.airtime(first_slot, slots - 1) * rate >= need:
            slots -= 1
        return slots


def long_enough(expected_slots: float, correlation: float) -> bool:
    """Return whether a transfer lasts long enough for `auto` to draw it by renewal."""
    coherence_times = expected_slots * (1.0 - abs(correlation))
    return expected_slots >= AUTO_SLOTS and coherence_times >= AUTO_COHERENCE_TIMES


def exponential_draws(expected_slots: Values, mean: Values, long_run_variance: Values) -> Values:
    """Return how many independent exponential draws have the same relative variance as the bits of a transfer.

    Shannon's rates correspond to at least one draw per coherence time. With a table, a weak link carries bits only in
    rare moments above the lowest step: with two such moments in fifty coherence times, the sum is far from normal.

    Args:
        mean, long_run_variance: mean and long-run variance of the rate per slot, see `rate_moments`.
    """
    return expected_slots * mean * mean / long_run_variance


def check_choices(direction: str, fidelity: str) -> None:
    """Reject an unknown direction or fidelity.

    Raises:
        ValueError: the value is unknown; the message lists the known values.
    """
    if direction not in _STREAMS:
        raise ValueError(f"direction must be one of {', '.join(_STREAMS)}, got {direction!r}")
    if fidelity not in _FIDELITIES:
        raise ValueError(f"fidelity must be slot, renewal or auto, got {fidelity!r}")
