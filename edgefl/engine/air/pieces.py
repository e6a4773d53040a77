"""Pieces of transfers that begin at one slot boundary, worked out together when the first of them begins."""

from collections.abc import Sequence
from typing import Protocol

from edgefl.channel.changing_flow import ChangingFlow, foresee


class _Awaited(Protocol):
    """A transfer that will go on at a slot boundary."""

    def next_piece(self, slot: int) -> tuple[ChangingFlow, float] | None:
        """Return its bits, and its mean SNR on its share, if it goes on at a slot, now, and both are known."""


class Pieces:
    """What is known to go on when: all links are measured at one time, and most transfers go on then.

    What each transfer does is the same as alone: numbers for many links take little more time than for one.
    """

    def __init__(self) -> None:
        self._expected: dict[int, list[_Awaited]] = {}

    def expect(self, slot: int, transfer: _Awaited) -> None:
        """Note that a transfer goes on at a slot boundary, unless it is over by then."""
        self._expected.setdefault(slot, []).append(transfer)

    def begin(self, slot: int, until: int) -> None:
        """Work out the pieces of all that go on at a slot, which is now, when the first of them does."""
        expected: Sequence[_Awaited] | None = self._expected.pop(slot, None)
        if expected is None:
            return
        for past in [other for other in self._expected if other < slot]:
            del self._expected[past]  # all that were expected there were over before
        pieces = [piece for one in expected if (piece := one.next_piece(slot)) is not None]
        if len(pieces) > 1:
            foresee([flow for flow, _ in pieces], slot, [snr for _, snr in pieces], until)
