"""Frequency diversity: a band wider than the channel's coherence fades in several independent parts."""

import math
from collections.abc import Sequence

import numpy as np

from edgefl.channel.fading import BLOCK, Fading, LinkFading, hold_slots
from edgefl.channel.units import FloatArray

# below it the series' next term is less than rounding: L = 1 + a^2 / 6
_FLAT = 1e-4


def independent_parts(bandwidth_hz: float, delay_spread_s: float) -> float:
    """Return the number L of independent parts of a band, not rounded: the diversity order of its mean power.

    With paths whose power falls exponentially with their delay, of root mean square d, the fading at two frequencies
    f apart has the correlation 1 / (1 + 2 pi j d f), and its power the square of its size, 1 / (1 + (2 pi d f)^2).
    The variance of the mean power over a band W is the mean correlation of its pairs of frequencies; a = 2 pi d W:

        2 integral_0^1 (1 - x) / (1 + (a x)^2) dx = 2 atan(a) / a - ln(1 + a^2) / a^2.

    The mean of L independent parts has the variance 1 / L. For wide bands L is about 2 W d: 11 in 100 MHz of UMi in
    line of sight (50 ns), 22 without (103 ns).

    Args:
        bandwidth_hz: > 0. delay_spread_s: d, >= 0; 0 is flat.
    """
    a = 2.0 * math.pi * delay_spread_s * bandwidth_hz
    if a < _FLAT:
        return 1.0
    return 1.0 / (2.0 * math.atan(a) / a - math.log1p(a * a) / (a * a))


class DiverseFading:
    """The mean power of L independent Gauss-Markov taps, Gamma(L, 1/L): mean 1, variance 1/L.

    With Shannon's rates the rate of a slot is that of the mean power over the parts. By Jensen's inequality it is
    above the mean of the parts' rates: at 20 dB and L = 4 by 0.6 bit/s/Hz of 6.5, at 0 dB by 0.1 of 0.96. With the
    steps of a table it is that of one code over all parts, whose rates need a higher mean SNR
    (`edgefl.channel.modulation.snr_needed_over_parts`). A share of the band has as many parts as the whole, as if its
    blocks were spread over it all. Effect of leaving diversity out (L = 1): a transfer of 5 slots over 100 MHz waits
    until its one tap leaves a fade; at 10 dB and 10 m/s its 99th percentile is 23 slots, with 11 parts 9.

    Args:
        taps: one per part, all with one correlation; `independent_parts` has their number.
    """

    renews = True

    def __init__(self, taps: Sequence[LinkFading]) -> None:
        self._taps = taps
        self.generator = taps[0].generator
        self.correlation = taps[0].correlation

    @property
    def static(self) -> bool:
        """True if the fading never changes."""
        return self._taps[0].static

    @property
    def mean_power(self) -> float:
        """Mean power over time: for a static link its power, for any other 1."""
        return float(self.power(0, 1)[0]) if self.static else 1.0

    def forget(self) -> None:
        """Drop the pages of each tap; reading them draws the same numbers again."""
        for tap in self._taps:
            tap.forget()

    def power(self, first_slot: int, count: int) -> FloatArray:
        """Return [count] the mean power of the taps in the slots first_slot, first_slot + 1, ..."""
        if not self.static:
            hold_slots(self._taps, first_slot, count)
        return np.asarray(sum(tap.power(first_slot, count) for tap in self._taps) / len(self._taps))


def fading_in_parts(
    key: int, correlation: float, parts: int, block: int = BLOCK
) -> LinkFading | DiverseFading:
    """Return the fading of a link over a band with a number of independent parts.

    Args:
        key: 128-bit key, of which bits 120 and up number the parts. correlation, block: as of `LinkFading`.
    """
    taps = [LinkFading(key ^ part << 120, correlation, block) for part in range(parts)]
    return taps[0] if parts == 1 else DiverseFading(taps)


def parts_of(link: Fading) -> Sequence[Fading]:
    """Return the parts of a link's band, each with its own fading; a link in one part is its own."""
    return link._taps if isinstance(link, DiverseFading) else (link,)
