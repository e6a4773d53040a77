"""A transfer with a mean SNR that changes during the transfer, computed exactly, slot by slot."""

from collections.abc import Sequence

import numpy as np

from edgefl.channel.carrier import Carrier, Rules
from edgefl.channel.fading import Fading
from edgefl.channel.interference import draw_all_ahead, power_of_all
from edgefl.channel.units import FloatArray

_NOTHING = np.empty(0)
# Number of transfers computed together; a dozen arrays of this length fit in a core's second-level cache
_AT_ONCE = 32

# Part of a transfer with one SNR: first slot, SNR, slot at which the part ends
_Piece = tuple[int, float, int]


class ChangingFlow:
    """Count the bits sent in a transfer, and find the slot in which it ends, while its SNR is updated.

    If the SNR stays the same, the transfer ends in the slot of `Flow.slots_exact`, however often the SNR is updated.

    Args:
        carrier: the link's share of the band.
        payload_bits: number of bits to send, > 0.
        first_slot: earliest slot in which the transfer may begin.
    """

    def __init__(self, carrier: Carrier, fading: Fading, payload_bits: float, first_slot: int) -> None:
        self._carrier = carrier
        self._fading = fading
        self._payload_bits = payload_bits
        self._need = carrier.need(payload_bits)
        self._got = 0.0  # sent up to the settled slot, in units of `_need`
        self._slot = first_slot  # slot up to which the transfer is settled
        self._totals = _NOTHING  # sent by each slot from `_slot` on, in units of `_need`
        self._foreseen: tuple[_Piece, FloatArray, int] | None = None

    def end(self, slot: int, snr: float, until: int) -> int | None:
        """Continue the transfer at a mean SNR; return the slot at which it ends, or None if it ends after `until`.

        Args:
            slot: slot from which the new SNR applies, no earlier than the last call's slot; the last SNR applies
                until then.
            snr: linear mean SNR on the share, before fading.
            until: slot of the next SNR update.
        """
        self.settle(slot)
        foreseen, self._foreseen = self._foreseen, None
        if foreseen is not None and foreseen[0] == (slot, snr, until):
            _, self._totals, at = foreseen
        else:
            rates = self._carrier.efficiency(snr * self._fading.power(slot, until - slot))
            frame = self._carrier.frame
            if not frame.plain:
                rates = rates * frame.weights_from(slot, until - slot)
            rates[0] += self._got
            self._totals = rates.cumsum()
            # the slot that completes the payload, as in Flow.slots_exact
            at = int(self._totals.searchsorted(self._need))
        return None if at == len(self._totals) else slot + at + 1

    def settle(self, slot: int) -> None:
        """Count the bits sent up to a slot boundary; discard slots computed beyond it."""
        known: FloatArray = self._totals[: slot - self._slot]
        if len(known):
            self._got = float(known[-1])
        self._totals, self._slot = _NOTHING, slot

    @property
    def bits(self) -> float:
        """Bits sent up to the settled slot, at most the payload."""
        return min(self._payload_bits, self._got * self._carrier.unit_bits)


def foresee(flows: Sequence[ChangingFlow], slot: int, snrs: Sequence[float], until: int) -> None:
    """Compute together the results of `end` for many transfers that continue at the same slot boundary.

    Call `end` of each flow afterwards; if it gets other arguments than given here, that call computes its own result.

    Args:
        snrs: [flows] linear mean SNR of each flow on its share, as in `end`.
        until: slot of the next SNR update, after `slot`.
    """
    draw_all_ahead([flow._fading for flow in flows], slot)
    alike: dict[Rules, list[tuple[ChangingFlow, float]]] = {}
    for flow, snr in zip(flows, snrs, strict=True):
        alike.setdefault(flow._carrier.rules, []).append((flow, snr))
    for some in alike.values():
        for first in range(0, len(some), _AT_ONCE):
            _foresee(some[first : first + _AT_ONCE], slot, until)


def _foresee(some: Sequence[tuple[ChangingFlow, float]], slot: int, until: int) -> None:
    flows, snrs = [flow for flow, _ in some], [snr for _, snr in some]
    for flow in flows:
        flow.settle(slot)
    carrier, count = flows[0]._carrier, until - slot
    power = power_of_all([flow._fading for flow in flows], slot, count)
    power *= np.array(snrs)[:, None]
    rates = carrier.efficiency(power)
    if not carrier.frame.plain:
        rates *= carrier.frame.weights_from(slot, count)
    rates[:, 0] += [flow._got for flow in flows]
    totals = np.cumsum(rates, axis=1, out=rates)
    ends = (totals < np.array([flow._need for flow in flows])[:, None]).sum(axis=1).tolist()
    for flow, snr, row, at in zip(flows, snrs, totals, ends, strict=True):
        flow._foreseen = (slot, snr, until), row, at
