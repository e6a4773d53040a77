"""Compute in one batch all pieces of transfers that begin at the same slot boundary."""

from collections.abc import Sequence
from typing import Protocol

from edgefl.channel.changing_flow import ChangingFlow, foresee


class _Awaited(Protocol):
    """A transfer that continues at a slot boundary."""

    def next_piece(self, slot: int) -> tuple[ChangingFlow, float] | None:
        """Return the transfer's flow and its mean SNR on its share, if it continues and the SNR is known."""


class Pieces:
    """The transfers that continue at each slot boundary, which are computed as one batch.

    Computing many transfers in one batch takes little longer than computing one, and does not change their results.
    """

    def __init__(self) -> None:
        self._expected: dict[int, list[_Awaited]] = {}

    def expect(self, slot: int, transfer: _Awaited) -> None:
        """Register a transfer that continues at a slot boundary unless it ends earlier."""
        self._expected.setdefault(slot, []).append(transfer)

    def begin(self, slot: int, until: int) -> None:
        """Compute the pieces of all transfers that continue at the current slot; later calls do nothing."""
        expected: Sequence[_Awaited] | None = self._expected.pop(slot, None)
        if expected is None:
            return
        for past in [other for other in self._expected if other < slot]:
            del self._expected[past]  # all transfers expected at that slot ended earlier
        pieces = [piece for one in expected if (piece := one.next_piece(slot)) is not None]
        if len(pieces) > 1:
            foresee([flow for flow, _ in pieces], slot, [snr for _, snr in pieces], until)
