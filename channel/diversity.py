"""Frequency diversity: a band wider than the channel's coherence fades in several independent parts."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import BLOCK, LinkDraws, LinkFading
from edgefl.channel.fading_grids import NO_CORRELATION
from edgefl.channel.units import FloatArray

# below it the series' next term is less than rounding: L = 1 + a^2 / 6
_FLAT = 1e-4

# Slots of a page, and points of a page of every coarser grid: powers of 2
PAGE, _COARSE_PAGE = 256, 16
# Correlation of a part between two points from which on the slots between them have no random numbers of their own
SMOOTH = 0.99
# Pages of one grid that a link keeps: a slot's page, and the one before, which a read may begin in
_KEPT = 2
# Random numbers that are drawn and filled in together: they fit in a core's second-level cache
_AT_ONCE = 2**16
# Region of the random counter: that of a link's fading, which has a key of its own
_REGION = 0
_REUSED = np.random.Generator(np.random.Philox())

Numbers = npt.NDArray[np.float32]


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


@dataclass(frozen=True)
class _Grid:
    """Points of all parts, `points` to a page, and how pages are filled in between points of the next coarser grid.

    weights: of both neighbours, stds: of what is added, for points half way between known ones, the widest gap first;
        none if points are independent.
    correlation: of neighbouring points.
    """

    points: int
    weights: tuple[float, ...] = ()
    stds: tuple[float, ...] = ()
    correlation: float = 0.0


@lru_cache(maxsize=8192)
def _grids(correlation: float) -> tuple[_Grid, ...]:
    """Return the grids from the finest to the coarsest, whose points are independent; a static link has one point."""
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


class DiverseFading(LinkDraws):
    """The mean power of L independent Gauss-Markov parts, Gamma(L, 1/L): mean 1, variance 1/L.

    With Shannon's rates the rate of a slot is that of the mean power over the parts. By Jensen's inequality it is
    above the mean of the parts' rates: at 20 dB and L = 4 by 0.6 bit/s/Hz of 6.5, at 0 dB by 0.1 of 0.96. With the
    steps of a table it is that of one code over all parts, whose rates need a higher mean SNR
    (`edgefl.channel.modulation.snr_needed_over_parts`). A share of the band has as many parts as the whole, as if its
    blocks were spread over it all. Effect of leaving diversity out (L = 1): a transfer of 5 slots over 100 MHz waits
    until its one tap leaves a fade; at 10 dB and 10 m/s its 99th percentile is 23 slots, with 11 parts 9.

    Method: the process of `edgefl.channel.fading.LinkFading` in each part, a function of key and slot too. A page of
    slots lies between two points of a coarser grid; the point half way between two known ones, each k slots away with
    the correlation q = rho^k, is

        h = q / (1 + q^2) (left + right) + sqrt((1 - q^2) / (1 + q^2)) e,   e ~ CN(0, 1),

    the exact law of the process given both, and so on by halves, until neighbouring points have the correlation
    q >= SMOOTH. A slot at the part t of the way between two of these has the power of the straight line between them,
    and 2 t (1 - t) (1 - q) for what random numbers would add, so that its mean is 1. What is left out has a standard
    deviation of at most sqrt((1 - q) / L) of the mean power, 3 % with 11 parts, from one slot to the next: every
    eighth slot of a walking device has numbers of its own. Numbers have 32 bits, of which the power needs less than
    half; only the power of a page is kept.
    """

    renews = True

    def __init__(self, key: int, correlation: float, parts: int) -> None:
        """
        Args:
            key: 128-bit key of this link's random numbers.
            correlation: rho between consecutive slots, 0 <= rho <= 1.
            parts: L, >= 1; `independent_parts` has their number.

        Raises:
            ValueError: an argument is out of range.
        """
        super().__init__(key)
        if not (0.0 <= correlation <= 1.0 and parts >= 1):
            raise ValueError(f"correlation must lie within 0 and 1, parts >= 1, got {correlation}, {parts}")
        self.correlation = correlation
        self.static = correlation == 1.0  # the fading never changes
        self._rows = 2 * parts  # real and imaginary part of each
        self._grids = _grids(correlation)
        self._pages: list[dict[int, Numbers]] = [{} for _ in self._grids]
        self._powers: dict[int, FloatArray] = {}

    @property
    def mean_power(self) -> float:
        """Mean power over time: for a static link its power, for any other 1."""
        return float(self.power(0, 1)[0]) if self.static else 1.0

    def power(self, first_slot: int, count: int) -> FloatArray:
        """Return [count] the mean power of the parts in the slots first_slot, first_slot + 1, ...

        Raises:
            ValueError: negative slot or count.
        """
        if first_slot < 0 or count < 0:
            raise ValueError(f"first_slot and count must be >= 0, got {first_slot} and {count}")
        return power_of_diverse([self], np.array([first_slot]), count)[0]

    def _page(self, index: int) -> FloatArray:
        """Return [PAGE] the power of a page of slots."""
        if self.static:
            hold_powers([(self, 0)])
            return np.broadcast_to(self._powers[0][0], PAGE)
        if index not in self._powers:
            hold_powers([(self, index)])
        return self._powers[index]

    def _point(self, level: int, index: int) -> Numbers:
        """Return [rows] one point of a coarser grid."""
        page, offset = divmod(index, _COARSE_PAGE)
        if page not in self._pages[level]:
            _hold(level, [(self, page)])
        point: Numbers = self._pages[level][page][:, offset]
        return point

    def forget(self) -> None:
        """Drop all pages; reading them draws the same numbers again."""
        for pages in (*self._pages, self._powers):
            pages.clear()


def power_of_diverse(
    links: Sequence[DiverseFading], first_slots: npt.NDArray[np.int64], count: int
) -> FloatArray:
    """Return [links, count] the `power` of many links, from each link's first slot on."""
    power = np.empty((len(links), count))
    pages, starts = (of.tolist() for of in np.divmod(first_slots, PAGE))
    done, left = [0] * len(links), list(range(len(links)))
    while left:  # one page of each link at a time; missing ones are drawn together
        hold_powers([(links[i], pages[i]) for i in left])
        for i in left:
            begin, taken = done[i], min(PAGE - starts[i], count - done[i])
            power[i, begin : begin + taken] = links[i]._page(pages[i])[starts[i] : starts[i] + taken]
            pages[i], starts[i], done[i] = pages[i] + 1, 0, begin + taken
        left = [i for i in left if done[i] < count]
    return power


def hold_powers(places: Sequence[tuple[DiverseFading, int]]) -> None:
    """Draw the power of missing pages of slots of many links, given by their indices, together."""
    missing = {(id(link), page): (link, page) for link, page in places if page not in link._powers}
    for some in _batches(0, list(missing.values())):
        powers = _powers(_drawn(0, some), [link._grids[0].correlation for link, _ in some])
        for (link, page), power in zip(some, powers, strict=True):
            _keep(link._powers, page, power)


def _powers(points: Numbers, correlation: Sequence[float]) -> FloatArray:
    """Return the mean power of parts [n, slots], between points [n, rows, points].

    The last point is the next page's first, which points that are slots do not need. Rows are added one after the
    other, so that rounding does not depend on the number of links.
    """
    parts = points.shape[1] // 2
    at: FloatArray = np.add.reduce(np.square(points), axis=1).astype(float) / parts
    if points.shape[2] in (2, PAGE + 1):  # of a static link, or every slot
        return at[:, :-1]
    between = PAGE // (points.shape[2] - 1)
    both = np.add.reduce(points[:, :, :-1] * points[:, :, 1:], axis=1).astype(float) / parts
    both += (1.0 - np.array(correlation))[:, None]
    t = np.arange(between) / between
    left, right, both = at[:, :-1, None], at[:, 1:, None], both[:, :, None]
    powers = (1.0 - t) ** 2 * left + t**2 * right + 2.0 * t * (1.0 - t) * both
    return powers.reshape(len(points), PAGE)


def _batches(
    level: int, places: Sequence[tuple[DiverseFading, int]]
) -> Iterator[Sequence[tuple[DiverseFading, int]]]:
    """Cut places into those that are drawn together: pages of one size, of links with as many parts."""
    alike: dict[tuple[int, int], list[tuple[DiverseFading, int]]] = {}
    for link, index in places:
        alike.setdefault((link._grids[level].points, link._rows), []).append((link, index))
    for (points, rows), some in alike.items():
        together = max(1, _AT_ONCE // (points * rows))
        yield from (some[first : first + together] for first in range(0, len(some), together))


def _hold(level: int, places: Sequence[tuple[DiverseFading, int]]) -> None:
    """Draw missing pages of a coarser grid."""
    missing = {(id(link), index): (link, index) for link, index in places if index not in link._pages[level]}
    for some in _batches(level, list(missing.values())):
        for (link, index), page in zip(some, _drawn(level, some), strict=True):
            _keep(link._pages[level], index, page[:, :_COARSE_PAGE])


def _keep(pages: dict[int, Any], index: int, page: npt.NDArray[Any]) -> None:
    if len(pages) == _KEPT:
        del pages[next(iter(pages))]
    pages[index] = page.copy()  # a page must not keep the others in memory


def _drawn(level: int, places: Sequence[tuple[DiverseFading, int]]) -> Numbers:
    """Return a page of a grid of each link, [n, rows, points + 1], the next one's first point last.

    That point is 0 if points are independent.
    """
    points, rows = places[0][0]._grids[level].points, places[0][0]._rows
    fresh, rng = np.empty((len(places), rows, points), dtype=np.float32), _REUSED
    for (link, index), own in zip(places, fresh, strict=True):
        rng = link._draws(index, level, _REGION, rng)
        rng.standard_normal(dtype=np.float32, out=own)
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
    _hold(level + 1, [(link, at // _COARSE_PAGE) for link, index in places for at in (index, index + 1)])
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
        key: 128-bit key. correlation: as of `LinkFading`. block: as of `LinkFading`, for one part.
    """
    if parts == 1:
        return LinkFading(key, correlation, block)
    return DiverseFading(key, correlation, parts)
