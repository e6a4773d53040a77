"""A transfer whose mean SNR changes while it lasts, slot by slot and exact."""

import numpy as np

from channel.carrier import Carrier
from channel.fading import Fading
from channel.units import FloatArray

_NOTHING = np.empty(0)


class ChangingFlow:
    """Bits that a link has moved, and when its payload has arrived, as its SNR is read anew from time to time.

    With one SNR throughout, and wherever it is read, the transfer ends in the slot that `Flow.slots_exact` finds.

    Args:
        carrier: the link's share of the band.
        payload_bits: > 0.
        first_slot: the transfer's first; it may begin later.
    """

    def __init__(self, carrier: Carrier, fading: Fading, payload_bits: float, first_slot: int) -> None:
        self._carrier = carrier
        self._fading = fading
        self._payload_bits = payload_bits
        self._need = carrier.need(payload_bits)
        self._got = 0.0  # of the need
        self._slot = first_slot  # up to which it is settled
        self._totals = _NOTHING  # of the need, after each slot of the piece that begins there

    def end(self, slot: int, snr: float, until: int) -> int | None:
        """Go on from a slot boundary at a mean SNR; return the boundary at which all has arrived, if by `until`.

        Args:
            slot: no earlier than the last one; the slots up to it carried what the last SNR let them.
            snr: linear mean on the share, before fading.
            until: when the SNR is read next.
        """
        self.settle(slot)
        rates = self._carrier.efficiency(snr * self._fading.power(slot, until - slot))
        frame = self._carrier.frame
        if not frame.plain:
            rates = rates * frame.weights_from(slot, until - slot)
        rates[0] += self._got
        self._totals = np.cumsum(rates)
        # the slot that gathers what is missing, as in Flow.slots_exact
        at = int(np.searchsorted(self._totals, self._need))
        return None if at == len(self._totals) else slot + at + 1

    def settle(self, slot: int) -> None:
        """Count what was moved up to a slot boundary; beyond the piece last begun nothing is."""
        known: FloatArray = self._totals[: slot - self._slot]
        if len(known):
            self._got = float(known[-1])
        self._totals, self._slot = _NOTHING, slot

    @property
    def bits(self) -> float:
        """Bits moved up to the settled slot, never more than the payload."""
        return min(self._payload_bits, self._got * self._carrier.unit_bits)
