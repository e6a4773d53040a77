"""The grids of points, each coarser than the last, from which Gauss-Markov fading is filled in."""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from channel.units import FloatArray

# Slots per block, and points per page of every coarser grid. It is part of the definition of the process:
# another value gives other fading from the same key.
BLOCK = 2048

# A correlation below this over a whole block is treated as none.
NO_CORRELATION = 1e-6

# Rows of noise that a loop filters, 0.2 ms each, before scipy.signal is loaded for it, which takes a second.
_BY_HAND = 2048
_filtered_by_hand = 0


@dataclass(frozen=True)
class Grid:
    """Points that lie a power of BLOCK slots apart, and how a page of them is drawn."""

    correlation: float  # between neighbouring points
    innovation_std: float  # of real and imaginary part each
    log_step: float | None  # logarithm of |correlation|; None: independent points

    @cached_property
    def weights(self) -> FloatArray | None:
        """[BLOCK - 1] pull of the right edge on points 1, 2, ...; None: independent points."""
        return None if self.log_step is None else _bridge_weights(self.correlation, self.log_step)


@lru_cache(maxsize=8192)
def grids(correlation: float) -> tuple[Grid, ...]:
    """The grids from slots upwards; the last has independent points."""
    independent = Grid(0.0, math.sqrt(0.5), None)
    if correlation == 1.0:
        return (independent,)
    coarser: list[Grid] = []
    step = correlation
    # the logarithm keeps what powers of a correlation near 1 would round away
    log_step = math.log(abs(correlation)) if correlation else -math.inf
    while abs(step) >= NO_CORRELATION:
        innovation_std = math.sqrt(-math.expm1(2.0 * log_step) / 2.0)
        coarser.append(Grid(step, innovation_std, log_step))
        log_step *= BLOCK
        step = math.exp(log_step)
    return (*coarser, independent)


def _bridge_weights(step: float, log_step: float) -> FloatArray:
    """rho^(B-n) (1 - rho^(2n)) / (1 - rho^(2B)) for n = 1 .. B-1."""
    n = np.arange(1, BLOCK)
    sign = np.where((BLOCK - n) % 2 == 1, math.copysign(1.0, step), 1.0)
    rest = np.expm1(2.0 * log_step * n) / math.expm1(2.0 * log_step * BLOCK)
    return sign * np.exp(log_step * (BLOCK - n)) * rest


def filtered(noise: FloatArray, correlation: float, begin: FloatArray) -> FloatArray:
    """y[n] = correlation y[n-1] + noise[n] along the last axis; `begin` [..., 1] is correlation y[-1].

    The first ones by a loop: a short run draws no more, and checking a scenario far fewer. Both ways do the same
    operations in the same order, to the last bit.
    """
    global _filtered_by_hand
    rows = noise[..., 0].size
    if _filtered_by_hand + rows <= _BY_HAND:
        _filtered_by_hand += rows
        return filtered_in_turn(noise, correlation, begin)
    from scipy import signal

    result: FloatArray = signal.lfilter([1.0], [1.0, -correlation], noise, zi=begin)[0]
    return result


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
