"""Frequency diversity: a band wider than the channel's coherence fades in several independent parts."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.fading_grids import NO_CORRELATION
from edgefl.channel.fading_pages import PagedFading, draw_normals, hold
from edgefl.channel.units import FloatArray

# below this a, the next term of the series L = 1 + a^2 / 6 is smaller than rounding
_FLAT = 1e-4

# Slots of a page, and points of a page of every coarser grid: powers of 2
PAGE, _COARSE_PAGE = 256, 16
# Correlation of a part between two points above which the slots between them get no random numbers of their own
SMOOTH = 0.99
# Random numbers that are drawn and filled in together: they fit in a core's second-level cache
_AT_ONCE = 2**16

Numbers = npt.NDArray[np.float32]


def independent_parts(bandwidth_hz: float, delay_spread_s: float) -> float:
    """Return the number L of independent parts of a band, not rounded: the diversity order of its mean power.

    With paths whose power falls exponentially with their delay, and a root mean square delay of d, the fading at two
    frequencies f apart has the correlation 1 / (1 + 2 pi j d f), and its power the squared magnitude of this, 1 / (1
    + (2 pi d f)^2). The variance of the mean power over a band W is the mean correlation of its pairs of frequencies;
    a = 2 pi d W:

        2 integral_0^1 (1 - x) / (1 + (a x)^2) dx = 2 atan(a) / a - ln(1 + a^2) / a^2.

    The mean of L independent parts has the variance 1 / L. For wide bands L is about 2 W d: 11 in 100 MHz of UMi in
    line of sight (50 ns), 22 without (103 ns).

    Args:
        bandwidth_hz: W, > 0. delay_spread_s: d, >= 0; if it is 0, fading is flat over the band.
    """
    a = 2.0 * math.pi * delay_spread_s * bandwidth_hz
    if a < _FLAT:
        return 1.0
    return 1.0 / (2.0 * math.atan(a) / a - math.log1p(a * a) / (a * a))


@dataclass(frozen=True)
class _Grid:
    """A grid of points of all parts, with `points` per page, and how pages between coarser points are filled in.

    weights, stds: weight of both neighbours, and standard deviation of what is added, for points half way between
        known ones, the widest gap first; empty if points are independent.
    correlation: correlation of neighbouring points.
    """

    points: int
    weights: tuple[float, ...] = ()
    stds: tuple[float, ...] = ()
    correlation: float = 0.0


@lru_cache(maxsize=8192)
def _grids(correlation: float) -> tuple[_Grid, ...]:
    """Return the grids from the finest to the coarsest.

    Points of the coarsest grid are independent; a static link has one point.
    """
    if correlation == 1.0:
        return (_Grid(1),)
    grids: list[_Grid] = []
    points, log_step = PAGE, math.log(correlation) if correlation else -math.inf
    while points > 2 and 2.0 * log_step >= math.log(SMOOTH):
        points, log_step = points // 2, 2.0 * log_step
    while log_step > math.log(NO_CORRELATION):
        logs = [log_step * points / 2**halving for halving in range(1, points.bit_length())]
        weights = tuple(0.5 / math.cosh(log) for log in logs)  # q / (1 + q^2), q = e^log
        stds = tuple(math.sqrt(0.5 * math.tanh(-log)) for log in logs)  # (1 - q^2) / (1 + q^2), halved
        grids.append(_Grid(points, weights, stds, math.exp(log_step)))
        log_step *= points
        points = _COARSE_PAGE
    return (*grids, _Grid(points))


class DiverseFading(PagedFading):
    """The mean power of L independent Gauss-Markov parts, Gamma(L, 1/L): mean 1, variance 1/L.

    With Shannon's rates the rate of a slot is that of the mean power over the parts. By Jensen's inequality this rate
    is above the mean of the parts' rates: at L = 4 by 0.6 of 6.5 bit/s/Hz at 20 dB, and by 0.1 of 0.96 at 0 dB. With
    the steps of a table, the rate of a slot is that of one code over all parts, and each step needs a higher mean SNR
    (`edgefl.channel.modulation.snr_needed_over_parts`). A share of the band has as many parts as the whole, as if the
    share were spread over the whole band. Effect of leaving diversity out (L = 1): a transfer of 5 slots over 100 MHz
    waits until its one tap leaves a fade; at 10 dB and 10 m/s its 99th percentile is 23 slots, but 9 with 11 parts.

    Method: each part has the process of `edgefl.channel.fading.LinkFading`, also a function of key and slot. A page
    of slots lies between two points of a coarser grid; the point half way between two known ones, each k slots away
    with the correlation q = rho^k, is

        h = q / (1 + q^2) (left + right) + sqrt((1 - q^2) / (1 + q^2)) e,   e ~ CN(0, 1),

    the exact law of the process given both, and so on by halves, until neighbouring points have the correlation q >=
    SMOOTH. A slot at the fraction t of the distance between two of these has the power of the straight line between
    them, and 2 t (1 - t) (1 - q) for what random numbers would add, so that its mean is 1. This omission changes
    the power from one slot to the next by a standard deviation of at most sqrt((1 - q) / L), 3 % of the mean power
    with 11 parts: every eighth slot of a walking device has its own random numbers. Numbers have 32 bits, and the
    power needs less than half of them; only the power of a page is kept.
    """

    parts = ()  # a page of slots holds their power

    def __init__(self, key: int, correlation: float, parts: int) -> None:
        """
        Args:
            key: 128-bit key of this link's random numbers.
            correlation: rho between consecutive slots, 0 <= rho <= 1.
            parts: number L of independent parts, >= 1, as `independent_parts` computes it.

        Raises:
            ValueError: an argument is out of range.
        """
        if not (0.0 <= correlation <= 1.0 and parts >= 1):
            raise ValueError(f"correlation must be 0 to 1 and parts >= 1, got {correlation}, {parts}")
        self._rows = 2 * parts  # real and imaginary part of each
        self._grids = _grids(correlation)
        super().__init__(key, correlation, PAGE, _COARSE_PAGE, len(self._grids))

    @staticmethod
    def powers(numbers: FloatArray) -> FloatArray:
        return numbers

    def _alike(self, level: int) -> tuple[Hashable, int]:
        points = self._grids[level].points
        return (points, self._rows), max(1, _AT_ONCE // (points * self._rows))

    @staticmethod
    def _drawn(level: int, places: Sequence[tuple["DiverseFading", int]]) -> npt.NDArray[Any]:
        """Return pages as power in slots [n, PAGE], or pages of a coarser grid as points [n, rows, points]."""
        points = _points(level, places)
        if level:
            return points[:, :, :-1]
        return _powers(points, [link._grids[0].correlation for link, _ in places])


def _powers(points: Numbers, correlation: Sequence[float]) -> FloatArray:
    """Return the mean power over parts [n, slots], in slots between grid points [n, rows, points].

    The last point is the next page's first point, which a grid whose points are slots does not need. Rows are added
    one after the other, so that rounding does not depend on the number of links.
    """
    parts = points.shape[1] // 2
    at: FloatArray = np.add.reduce(np.square(points), axis=1).astype(float) / parts
    if points.shape[2] in (2, PAGE + 1):  # points of a static link, or of every slot
        return at[:, :-1]
    between = PAGE // (points.shape[2] - 1)
    both = np.add.reduce(points[:, :, :-1] * points[:, :, 1:], axis=1).astype(float) / parts
    both += (1.0 - np.array(correlation))[:, None]
    t = np.arange(between) / between
    left, right, both = at[:, :-1, None], at[:, 1:, None], both[:, :, None]
    powers = (1.0 - t) ** 2 * left + t**2 * right + 2.0 * t * (1.0 - t) * both
    return powers.reshape(len(points), PAGE)


def _points(level: int, places: Sequence[tuple[DiverseFading, int]]) -> Numbers:
    """Return each link's page of a grid, [n, rows, points + 1], ending with the next page's first point.

    If points are independent, this last point is 0.
    """
    points, rows = places[0][0]._grids[level].points, places[0][0]._rows
    fresh = np.empty((len(places), rows, points), dtype=np.float32)
    draw_normals(level, places, fresh)
    between = [i for i, (link, _) in enumerate(places) if link._grids[level].weights]
    if len(between) == len(places):
        return _filled_in(level, places, fresh)
    pages = np.zeros((len(places), rows, points + 1), dtype=np.float32)
    np.multiply(fresh, np.float32(math.sqrt(0.5)), out=pages[:, :, :points])
    if between:
        pages[between] = _filled_in(level, [places[i] for i in between], fresh[between])
    return pages


def _filled_in(level: int, places: Sequence[tuple[DiverseFading, int]], fresh: Numbers) -> Numbers:
    """Return pages [n, rows, points + 1] between points of the next coarser grid, from standard normal numbers."""
    count, rows, points = fresh.shape
    hold(level + 1, [(link, at // _COARSE_PAGE) for link, index in places for at in (index, index + 1)])
    pages = np.empty((count, rows, points + 1), dtype=np.float32)
    for page, (link, index) in zip(pages, places, strict=True):
        page[:, 0], page[:, points] = link._point(level + 1, index), link._point(level + 1, index + 1)
    grids = [link._grids[level] for link, _ in places]
    weights = np.array([grid.weights for grid in grids], dtype=np.float32).T[:, :, None, None]
    stds = np.array([grid.stds for grid in grids], dtype=np.float32).T[:, :, None, None]
    gap = points
    for weight, std in zip(weights, stds, strict=True):
        half = gap // 2
        middle = pages[:, :, :-1:gap] + pages[:, :, gap::gap]
        middle *= weight
        middle += std * fresh[:, :, half::gap]
        pages[:, :, half::gap] = middle
        gap = half
    return pages


def fading_in_parts(
    key: int, correlation: float, parts: int, block: int = BLOCK
) -> LinkFading | DiverseFading:
    """Return the fading of a link over a band with a number of independent parts.

    Args:
        key: 128-bit key of the link's random numbers. correlation: rho between consecutive slots. block: how many
            slots to draw at once if there is one part.
    """
    if parts == 1:
        return LinkFading(key, correlation, block)
    return DiverseFading(key, correlation, parts)
