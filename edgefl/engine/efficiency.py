"""Spectral efficiencies of a run's transfers, counted in steps: medians without keeping every transfer."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from channel.tdd import Direction
from channel.units import FloatArray
from edgefl.engine.parts import Part, Span
from edgefl.engine.records import covered_s

STEP = 0.05  # bit/s/Hz
STEPS = 2000  # up to 100 bit/s/Hz, in one step beyond


class Efficiency:
    """How many bits a second transfers have moved on each Hz that they had, padding of the last slot included.

    With shares held for a round, a transfer's is its bits over its share of the band and its airtime. Where the
    band is shared dynamically nobody keeps a transfer's share in each slot: there it is the band's in a round, all
    bits of a direction over the time in which anybody used it, for a scheduler leaves no part of a band unused.
    In a TDD frame airtime is taken as the direction's mean share of the frame.

    Args:
        bandwidth_hz: of the whole band.
        on_share: direction -> mean share of the time in which the frame serves it.
        dynamic: whether shares change within a round.
    """

    def __init__(self, bandwidth_hz: float, on_share: Mapping[Direction, float], dynamic: bool) -> None:
        self._hz = {direction: bandwidth_hz * share for direction, share in on_share.items()}
        self._dynamic = dynamic
        self._counts = {direction: [0] * (STEPS + 1) for direction in on_share}

    def count(self, parts: Sequence[Part], shares: Mapping[Direction, FloatArray]) -> None:
        """Count a round's transfers.

        Args:
            shares: direction -> [parts] of the band.
        """
        for direction, counts in self._counts.items():
            spans = [part.downlink if direction == "downlink" else part.uplink for part in parts]
            hz = self._hz[direction]
            each = shares[direction].tolist()
            for value in _of_the_band(spans, hz) if self._dynamic else _of_each(spans, each, hz):
                counts[min(int(value / STEP), STEPS)] += 1

    def median(self, direction: Direction) -> float:
        """The median so far, to the middle of its step, bit/s/Hz; nan: no transfer has moved a bit."""
        counts = np.array(self._counts[direction])
        if not counts.any():
            return math.nan
        middle = np.searchsorted(np.cumsum(counts), (counts.sum() + 1) // 2)
        return float((middle + 0.5) * STEP)


def _of_each(spans: Sequence[Span | None], shares: Sequence[float], hz: float) -> list[float]:
    # plain numbers: for the hundred of a round that is faster than to make arrays of them
    return [
        span.bits / (share * hz * (span.end_s - span.start_s))
        for span, share in zip(spans, shares, strict=True)
        if span and span.bits and span.end_s > span.start_s
    ]


def _of_the_band(spans: Sequence[Span | None], hz: float) -> list[float]:
    busy = [span for span in spans if span and span.bits and span.end_s > span.start_s]
    if not busy:
        return []
    in_use_s = covered_s([span.start_s for span in busy], [span.end_s for span in busy])
    return [sum(span.bits for span in busy) / (hz * in_use_s)]
