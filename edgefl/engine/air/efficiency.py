"""Histograms of the spectral efficiencies of a run's transfers, from which medians are read."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from edgefl.channel.tdd import Direction
from edgefl.channel.units import FloatArray
from edgefl.engine.parts import Part, Span

STEP = 0.05  # bit/s/Hz
STEPS = 2000  # up to 100 bit/s/Hz; higher values go into one last bin


class Efficiency:
    """Count transfers by their spectral efficiency in bit/s/Hz, including the padding of their last slot.

    With shares fixed for a round, a transfer's efficiency is its bits over its share of the band and its airtime.
    With dynamically shared bands, shares are not recorded, so each round counts as one transfer on the whole band, of
    which a scheduler leaves no part unused: the bits in a direction, divided by the bandwidth and by the time in
    which the band was in use, or in TDD by the part of this time that serves the direction.

    Args:
        bandwidth_hz: bandwidth of the whole band.
        on_share: direction -> fraction of time in which the frame serves this direction.
        dynamic: whether shares of the band change within a round.
    """

    def __init__(self, bandwidth_hz: float, on_share: Mapping[Direction, float], dynamic: bool) -> None:
        self._bandwidth_hz = bandwidth_hz
        self._on_share = on_share
        self._dynamic = dynamic
        self._counts = {direction: [0] * (STEPS + 1) for direction in on_share}

    def count(self, parts: Sequence[Part], shares: Mapping[Direction, FloatArray]) -> None:
        """Count the spectral efficiencies of a round's transfers.

        Args:
            shares: direction -> [parts] shares of the band.
        """
        for direction, counts in self._counts.items():
            spans = [part.downlink if direction == "downlink" else part.uplink for part in parts]
            if self._dynamic:
                values = _of_the_band(spans, self._bandwidth_hz * self._on_share[direction])
            else:
                values = _of_each(spans, shares[direction].tolist(), self._bandwidth_hz)
            for value in values:
                counts[min(int(value / STEP), STEPS)] += 1

    def median(self, direction: Direction) -> float:
        """Return the median so far in bit/s/Hz, as the middle of its bin; nan if no transfer has carried a bit."""
        counts = np.array(self._counts[direction])
        if not counts.any():
            return math.nan
        middle = np.searchsorted(np.cumsum(counts), (counts.sum() + 1) // 2)
        return float((middle + 0.5) * STEP)


def _of_each(spans: Sequence[Span | None], shares: Sequence[float], hz: float) -> list[float]:
    # with a few hundred transfers per round, plain numbers are faster than arrays
    return [
        span.bits / (share * hz * span.airtime_s)
        for span, share in zip(spans, shares, strict=True)
        if span and span.bits and span.airtime_s
    ]


def _of_the_band(spans: Sequence[Span | None], hz: float) -> list[float]:
    busy = [span for span in spans if span and span.bits and span.airtime_s]
    if not busy:
        return []
    in_use_s, until_s = 0.0, -math.inf
    for span in sorted(busy, key=lambda span: span.start_s):
        in_use_s += max(0.0, span.end_s - max(span.start_s, until_s))
        until_s = max(until_s, span.end_s)
    return [sum(span.bits for span in busy) / (hz * in_use_s)]
