"""Grids of points, each coarser than the previous one, from which Gauss-Markov fading is filled in."""

import math
import sys
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from edgefl.channel.units import FloatArray

# Slots per block, and points per page of every coarser grid, by default
BLOCK = 2048

# Correlations over a whole block that are below this value are treated as zero
NO_CORRELATION = 1e-6

# Number of values to filter in a loop, at 0.1 us each, before importing scipy.signal, which takes a second
_BY_HAND = 2048 * BLOCK
_filtered_by_hand = 0
# Least number of rows for which a loop filters all rows together, one point of each row per step
_SIDE_BY_SIDE = 16


@dataclass(frozen=True)
class Grid:
    """A grid with steps of block^level slots, and the constants with which its pages are drawn."""

    correlation: float  # correlation of neighbouring points
    innovation_std: float  # standard deviation of the real part, and of the imaginary part
    log_step: float | None  # logarithm of |correlation|, or None if points are independent
    block: int  # points of a page

    @cached_property
    def weights(self) -> FloatArray | None:
        """Weights [block - 1] of a block's right edge at its points 1, 2, ..., or None if points are independent."""
        return None if self.log_step is None else _bridge_weights(self.correlation, self.log_step, self.block)


@lru_cache(maxsize=8192)
def grids(correlation: float, block: int = BLOCK) -> tuple[Grid, ...]:
    """Return the grids, from single slots to the coarsest; the last grid has independent points."""
    independent = Grid(0.0, math.sqrt(0.5), None, block)
    if correlation == 1.0:
        return (independent,)
    coarser: list[Grid] = []
    step = correlation
    # the logarithm preserves digits that powers of a correlation near 1 would lose
    log_step = math.log(abs(correlation)) if correlation else -math.inf
    while abs(step) >= NO_CORRELATION:
        innovation_std = math.sqrt(-math.expm1(2.0 * log_step) / 2.0)
        coarser.append(Grid(step, innovation_std, log_step, block))
        log_step *= block
        step = math.exp(log_step)
    return (*coarser, independent)


def _bridge_weights(step: float, log_step: float, block: int) -> FloatArray:
    """Return rho^(B-n) (1 - rho^(2n)) / (1 - rho^(2B)) for n = 1 .. B-1."""
    n = np.arange(1, block)
    sign = np.where((block - n) % 2 == 1, math.copysign(1.0, step), 1.0)
    rest = np.expm1(2.0 * log_step * n) / math.expm1(2.0 * log_step * block)
    return sign * np.exp(log_step * (block - n)) * rest


def filtered(noise: FloatArray, correlation: FloatArray, begin: FloatArray) -> FloatArray:
    """Return y[n] = correlation y[n-1] + noise[n] along the last axis of [links, parts, points].

    Many links are filtered side by side in a loop, and a few links one by one with SciPy. The first links of a run
    are filtered by a Python loop, so that a short run or a check of a scenario need not import SciPy. All methods do
    the same operations in the same order, and agree bit for bit.

    Args:
        correlation: [links] factor on the previous value. begin: [links, parts, 1] correlation times y[-1].
    """
    global _filtered_by_hand
    alike = bool((correlation == correlation[0]).all())
    if begin.size >= _SIDE_BY_SIDE and not (alike and "scipy.signal" in sys.modules):
        return filtered_side_by_side(noise, correlation, begin)
    if not alike:
        return np.concatenate(
            [filtered(noise[i : i + 1], correlation[i : i + 1], begin[i : i + 1]) for i in range(len(noise))]
        )
    if "scipy.signal" not in sys.modules and _filtered_by_hand + noise.size <= _BY_HAND:
        _filtered_by_hand += noise.size
        return filtered_in_turn(noise, float(correlation[0]), begin)
    from scipy import signal

    result: FloatArray = signal.lfilter([1.0], [1.0, -correlation[0]], noise, zi=begin)[0]
    return result


def filtered_side_by_side(noise: FloatArray, correlation: FloatArray, begin: FloatArray) -> FloatArray:
    points = np.ascontiguousarray(noise.reshape(-1, noise.shape[-1]).T)
    carried, factor = begin.ravel().copy(), np.repeat(correlation, noise.shape[1])
    for point in points:
        point += carried
        np.multiply(point, factor, out=carried)
    return np.ascontiguousarray(points.T).reshape(noise.shape)


def filtered_in_turn(noise: FloatArray, correlation: float, begin: FloatArray) -> FloatArray:
    rows = []
    for row, first in zip(noise.reshape(-1, noise.shape[-1]).tolist(), begin.ravel().tolist(), strict=True):
        carried = first
        values = []
        for each in row:
            value = each + carried
            values.append(value)
            carried = correlation * value
        rows.append(values)
    return np.array(rows).reshape(noise.shape)
