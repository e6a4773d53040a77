"""Model frequency diversity: a band wider than the coherence bandwidth fades in several independent parts."""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from edgefl.channel.fading import BLOCK, LinkFading
from edgefl.channel.fading_grids import NO_CORRELATION
from edgefl.channel.fading_pages import KEPT, PagedFading, generators, hold
from edgefl.channel.units import FloatArray

# below this a, the next term of the series L = 1 + a^2 / 6 is smaller than rounding
_FLAT = 1e-4

# Number of slots on a page, and number of points on a page of each coarser grid; both are powers of 2
PAGE, _COARSE_PAGE = 256, 16
# Number of pages of slots that a link keeps and draws together, enough to read 400 slots
_KEPT_OF_SLOTS = 3
# If neighbouring points are more correlated than this, the slots in between are interpolated
SMOOTH = 0.99
# Number of points that are drawn and filled in together, so that the arrays fit in a core's second-level cache
_AT_ONCE = 2**14


def independent_parts(bandwidth_hz: float, delay_spread_s: float) -> float:
    """Return the diversity order L of a band's mean power: the number of independent parts, unrounded.

    For an exponential power delay profile with root mean square delay spread d, fading at two frequencies f apart has
    the correlation 1 / (1 + 2 pi j d f), and the correlation of the fading's power is the squared magnitude,
    1 / (1 + (2 pi d f)^2). The variance of the mean power over a band W is the mean correlation over all pairs of
    frequencies; with a = 2 pi d W it is

        2 integral_0^1 (1 - x) / (1 + (a x)^2) dx = 2 atan(a) / a - ln(1 + a^2) / a^2.

    The mean of L independent parts has the variance 1 / L. For wide bands L is about 2 W d: 11 for UMi in 100 MHz
    with line of sight (50 ns), and 22 without line of sight (103 ns).

    Args:
        bandwidth_hz: W, > 0. delay_spread_s: d, >= 0; if it is 0, fading is flat over the band.
    """
    a = 2.0 * math.pi * delay_spread_s * bandwidth_hz
    if a < _FLAT:
        return 1.0
    return 1.0 / (2.0 * math.atan(a) / a - math.log1p(a * a) / (a * a))


@dataclass(frozen=True)
class _Grid:
    """A grid of points, with the weights and variances for filling in points between those of the coarser grid.

    weights, variances: for a point half way between two known points, the weight of each, and the variance of the
    added noise relative to the process's variance; widest gap first; empty if points are independent.
    correlation: correlation of neighbouring points.
    """

    points: int
    weights: tuple[float, ...] = ()
    variances: tuple[float, ...] = ()
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
        variances = tuple(math.tanh(-log) for log in logs)  # (1 - q^2) / (1 + q^2)
        grids.append(_Grid(points, weights, variances, math.exp(log_step)))
        log_step *= points
        points = _COARSE_PAGE
    return (*grids, _Grid(points))


class DiverseFading(PagedFading):
    """The mean power of L independent Gauss-Markov parts, Gamma(L, 1/L): mean 1, variance 1/L.

    With Shannon's rates, the rate of a slot is the rate at the mean power over the parts. By Jensen's inequality this
    rate exceeds the mean of the parts' rates: for L = 4, by 0.6 of 6.5 bit/s/Hz at 20 dB, and by 0.1 of 0.96 bit/s/Hz
    at 0 dB. With the steps of a table, the rate of a slot is the rate of one code over all parts, and each step needs
    a higher mean SNR (`edgefl.channel.modulation.snr_needed_over_parts`). A share of the band has as many parts as
    the whole band, as if spread over the whole band. Without diversity (L = 1), a transfer of 5 slots over 100 MHz
    waits until its only tap leaves a fade; at 10 dB and 10 m/s, the 99th percentile is 23 slots (9 for 11 parts).

    Method: the real and imaginary parts of a slot form a vector h of 2 L numbers. Each number follows the process of
    `edgefl.channel.fading.LinkFading` and is likewise a function of key and slot. A page of slots lies between two
    points of a coarser grid. The point half way between two known points, each k slots away with correlation q =
    rho^k, is

        h = q / (1 + q^2) (left + right) + sqrt((1 - q^2) / (1 + q^2)) e,   e ~ N(0, 1 / (2 L)),

    which has the exact conditional distribution of the process. Halving continues until neighbouring points have
    correlation q >= SMOOTH. Only powers are read, and the distribution of |h|^2, h.left and h.right depends on left
    and right only through their squared lengths and their inner product. A point therefore takes three random numbers
    instead of 2 L: the component of e along left, its component perpendicular to left in the plane of left and right,
    and the squared length of the remainder, which is chi-squared with 2 L - 2 degrees of freedom.

    The vector of a slot at fraction t between two points is interpolated linearly, and 2 t (1 - t) (1 - q) is added
    to its power to keep the mean at 1. Interpolation changes the power of slots by a standard deviation of at most
    sqrt((1 - q) / L), 3 % of the mean for 11 parts; walking devices have a point every 8 slots.
    """

    parts = ()  # a page of slots contains a single power per slot

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
        self._order = parts
        self._grids = _grids(correlation)
        super().__init__(key, correlation, PAGE, _COARSE_PAGE, len(self._grids))

    @staticmethod
    def powers(numbers: FloatArray) -> FloatArray:
        return numbers

    def _kept(self, level: int) -> int:
        return KEPT if level else _KEPT_OF_SLOTS

    def _alike(self, level: int) -> tuple[Hashable, int]:
        grid = self._grids[level]
        return (grid.points, bool(grid.weights)), max(1, _AT_ONCE // grid.points)

    @staticmethod
    def _drawn(level: int, places: Sequence[tuple["DiverseFading", int]]) -> npt.NDArray[Any]:
        """Return pages as power in slots [n, PAGE], or pages of a coarser grid.

        A page [n, 2, points] of a coarser grid has each point's power and the cosine of the angle to the next point.
        """
        filled = bool(places[0][0]._grids[level].weights)
        points = _between(level, places) if filled else _independent(level, places)
        if level:
            powers, products = points
            cosines = products / np.sqrt(powers[:, :-1] * powers[:, 1:]) if filled else products
            return np.stack((powers[:, : cosines.shape[1]], cosines), axis=1)
        return _in_slots(*points, [link._grids[0].correlation for link, _ in places])


def _in_slots(powers: FloatArray, products: FloatArray, correlation: Sequence[float]) -> FloatArray:
    """Return power [n, slots], interpolated if `powers` [n, points + 1] belong to points farther apart than slots."""
    between = PAGE // products.shape[1]
    if powers.shape[1] == products.shape[1] or between == 1:  # static link, or one point per slot
        return powers[:, : products.shape[1]]
    both = products + (1.0 - np.array(correlation))[:, None]
    t = np.arange(between) / between
    left, right, both = powers[:, :-1, None], powers[:, 1:, None], both[:, :, None]
    slots: FloatArray = (1.0 - t) ** 2 * left + t**2 * right + 2.0 * t * (1.0 - t) * both
    return slots.reshape(len(powers), PAGE)


def _normals(
    level: int, places: Sequence[tuple[DiverseFading, int]], sets: int
) -> tuple[FloatArray, FloatArray]:
    """Draw two of each vector's 2 L normal numbers, and the sum of squares of the other numbers.

    Args:
        sets: number of vectors to draw for each point.

    Returns:
        [n, sets, 2, points] and [n, sets, points].
    """
    points = places[0][0]._grids[level].points
    normals, rest = np.empty((len(places), sets, 2, points)), np.empty((len(places), sets, points))
    for rng, (link, _), two, own in zip(generators(level, places), places, normals, rest, strict=True):
        rng.standard_normal(out=two)
        rng.standard_gamma(link._order - 1.0, out=own)
    rest *= 2.0
    return normals, rest


def _independent(level: int, places: Sequence[tuple[DiverseFading, int]]) -> tuple[FloatArray, FloatArray]:
    """Draw the power [n, points] of independent points, and on a coarser grid the cosine to the next point."""
    (normals, rest), parts = _normals(level, places, 2 if level else 1), [[link._order] for link, _ in places]
    squares = np.square(normals[:, :, 0])
    lengths = squares + np.square(normals[:, :, 1]) + rest
    powers = lengths[:, 0] / (2.0 * np.array(parts))
    return powers, normals[:, 1, 0] / np.sqrt(lengths[:, 1]) if level else powers


def _between(level: int, places: Sequence[tuple[DiverseFading, int]]) -> tuple[FloatArray, FloatArray]:
    """Return [n, points + 1] the power of points from one point of the coarser grid to the next, both included, and
    [n, points] the inner product of each point's vector with the next point's vector.
    """
    hold(level + 1, [(link, at // _COARSE_PAGE) for link, index in places for at in (index, index + 1)])
    ends = np.array([(*link._point(level + 1, i), link._point(level + 1, i + 1)[0]) for link, i in places])
    powers, products = ends[:, ::2], ends[:, 1:2] * np.sqrt(ends[:, :1] * ends[:, 2:])
    (normals, rest), grids = _normals(level, places, 1), [link._grids[level] for link, _ in places]
    weights = np.array([grid.weights for grid in grids]).T[:, :, None]
    # each halving uses as many random numbers as there are gaps: one, two, four, and so on
    gaps = 2 ** np.arange(len(weights))
    variance = np.repeat(np.array([grid.variances for grid in grids]), gaps, axis=1)
    variance /= 2.0 * np.array([[link._order] for link, _ in places])
    added = normals[:, 0, :, : gaps.sum()]
    added *= np.sqrt(variance)[:, None]
    length = np.square(added).sum(axis=1) + variance * rest[:, 0, : gaps.sum()]
    for weight, count in zip(weights, gaps.tolist(), strict=True):
        some = slice(count - 1, 2 * count - 1)
        powers, products = _halved(powers, products, weight, added[:, :, some], length[:, some])
    return powers, products


def _halved(
    powers: FloatArray, products: FloatArray, weight: FloatArray, added: FloatArray, length: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fill in a point between each two neighbours of m + 1 points; return powers [n, 2 m + 1] and products [n, 2 m].

    Args:
        weight: [n, 1] weight of both neighbours. added: [n, 2, m] noise along the left neighbour, and across it in
            the plane of both neighbours. length: [n, m] squared length of the whole noise vector.
    """
    left, right = powers[:, :-1], powers[:, 1:]
    root = np.sqrt(left)
    along = products / root  # component of the right neighbour along the left neighbour
    across = np.sqrt(np.maximum(right - along * along, 0.0))
    on, both = np.empty((2, *products.shape, 2))  # inner products with the left and the right neighbour
    np.multiply(root, added[:, 0], out=on[..., 0])
    np.add(along * added[:, 0], across * added[:, 1], out=on[..., 1])
    np.add(left, products, out=both[..., 0])
    np.add(right, products, out=both[..., 1])
    both *= weight[..., None]
    both += on
    on += both
    filled = np.empty((len(powers), 2 * products.shape[1] + 1))
    filled[:, ::2] = powers
    np.add(weight * (on[..., 0] + on[..., 1]), length, out=filled[:, 1::2])
    return filled, both.reshape(len(powers), -1)


def fading_in_parts(
    key: int, correlation: float, parts: int, block: int = BLOCK
) -> LinkFading | DiverseFading:
    """Return the fading of a link over a band with this number of independent parts.

    Args:
        key: 128-bit key of the link's random numbers. correlation: rho between consecutive slots. block: number of
            slots to draw at once if there is only one part.
    """
    if parts == 1:
        return LinkFading(key, correlation, block)
    return DiverseFading(key, correlation, parts)
