"""Compute Rayleigh fading as a function of time, which can be read at any slot, in any order."""

import math
from collections.abc import Hashable, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from edgefl.channel.bessel import j0
from edgefl.channel.fading_grids import BLOCK as BLOCK
from edgefl.channel.fading_grids import filtered, grids
from edgefl.channel.fading_pages import KEPT, PagedFading, generators, hold
from edgefl.channel.units import SPEED_OF_LIGHT_M_S, FloatArray

__all__ = ["LinkFading", "doppler_hz", "slot_correlation"]

# J0 is positive up to this argument, and oscillates around zero beyond it
FIRST_BESSEL_ZERO = 2.4048255576957724

# Number of points drawn together; their real and imaginary parts fit in a core's second-level cache
_POINTS_AT_ONCE = 12 * BLOCK


def doppler_hz(speed_m_s: float, *, carrier_hz: float) -> float:
    """Return the largest Doppler shift f_d = v fc / c. Source: journal paper, (39)."""
    return speed_m_s * carrier_hz / SPEED_OF_LIGHT_M_S


def slot_correlation(speed_m_s: float, *, carrier_hz: float, slot_s: float) -> float:
    """Return the correlation rho = J0(2 pi f_d tau) of the fading in consecutive slots.

    Args:
        speed_m_s: the device's speed, >= 0; at 0, fading never changes (rho = 1).
        carrier_hz: carrier frequency, > 0.
        slot_s: length tau of a slot, > 0.

    Returns:
        Correlation rho, in (0, 1].

    Raises:
        ValueError: the speed is negative, or so high that J0 would be negative; see `slot_turn`.

    Source: journal paper, eq. (39); Jakes, Microwave Mobile Communications, 1974.
    """
    return j0(slot_turn(speed_m_s, carrier_hz=carrier_hz, slot_s=slot_s))


def speed_limit_m_s(*, carrier_hz: float, slot_s: float) -> float:
    """Return the speed at which the fading's phase shift in a slot reaches J0's first zero; see `slot_turn`."""
    return FIRST_BESSEL_ZERO / (2.0 * math.pi * doppler_hz(1.0, carrier_hz=carrier_hz) * slot_s)


def slot_turn(speed_m_s: float, *, carrier_hz: float, slot_s: float) -> float:
    """Return the largest phase shift of the fading in a slot, 2 pi f_d tau in rad.

    Beyond the first zero of J0 (66 m/s at 3.5 GHz and 0.5 ms), rho would become negative and then rise again with
    speed. The channel then changes completely within a slot, and a Gauss-Markov step no longer describes it, so such
    speeds raise an error.

    Args:
        speed_m_s: the device's speed, >= 0.
        carrier_hz: carrier frequency, > 0.
        slot_s: length tau of a slot, > 0.

    Raises:
        ValueError: the speed is negative or beyond J0's first zero; the message names the limit and the remedy.
    """
    if not (speed_m_s >= 0 and carrier_hz > 0 and slot_s > 0):
        raise ValueError(
            "speed_m_s must be >= 0, carrier_hz and slot_s > 0, "
            f"got {speed_m_s} m/s, {carrier_hz} Hz and {slot_s} s"
        )
    turn = 2.0 * math.pi * doppler_hz(speed_m_s, carrier_hz=carrier_hz) * slot_s
    if turn >= FIRST_BESSEL_ZERO:
        limit_m_s = speed_limit_m_s(carrier_hz=carrier_hz, slot_s=slot_s)
        raise ValueError(
            f"speed_m_s {speed_m_s:g} is too fast for slots of {slot_s:g} s at {carrier_hz:g} Hz: "
            f"rho = J0(2 pi f_d tau) is positive below {limit_m_s:.3g} m/s only; use slot_s below "
            f"{slot_s * FIRST_BESSEL_ZERO / turn:.3g} or a lower speed"
        )
    return turn


class Fading(Protocol):
    """Fading of a link: its power relative to the mean as a function of the slot."""

    @property
    def static(self) -> bool:
        """Whether the link's power never changes."""

    @property
    def correlation(self) -> float:
        """Correlation rho of the fading between consecutive slots."""

    @property
    def renews(self) -> bool:
        """Whether the distribution of a sum of many rates is known, so that a transfer's length can be drawn."""

    @property
    def mean_power(self) -> float:
        """Mean power over time: |h|^2 of a static link; for other links, the expectation of |h|^2."""

    def power(self, first_slot: int, count: int) -> FloatArray:
        """Return [count] the power of the slots first_slot, first_slot + 1, ..."""

    def generator(
        self, first_slot: int, stream: int, reused: np.random.Generator | None = None
    ) -> np.random.Generator:
        """Return a random generator of this link for a slot and purpose."""

    def forget(self) -> None:
        """Free the memory of fading that has been read; reading it again draws the same numbers."""


class LinkFading(PagedFading):
    """Gauss-Markov fading of one link, h[n] = rho h[n-1] + sqrt(1 - rho^2) e[n] with e ~ CN(0, 1).

    The process is stationary with E|h|^2 = 1; |h| is Rayleigh distributed. The value at slot n depends only on (key,
    rho, n): not on the sender, on earlier reads, or on how reads are split. Uplink and downlink have the same h
    (TDD).

    Method: time is cut into blocks of BLOCK slots. The values at the block edges are themselves a Gauss-Markov
    process, with correlation rho^BLOCK per step; the block between two known edges is filled by an AR(1) path that
    starts at the left edge and is tied to the right edge,

        h[n] = free[n] + rho^(B-n) (1 - rho^(2n)) / (1 - rho^(2B)) (right - free[B]),

    which has the exact distribution of the process given its edges (a Gaussian bridge). The edges are points of a
    coarser grid, which is filled in the same way from a still coarser grid, and so on, until points correlate by less
    than NO_CORRELATION; this last grid is drawn independently. The only approximation is that values on opposite
    sides of its points lose a correlation of less than 1e-6. Every page draws from its own Philox counter.

    Source: journal paper, eq. (23). Left out: a line-of-sight component, multipath delay, and antennas.
    """

    parts = (2,)

    def __init__(self, key: int, correlation: float, block: int = BLOCK) -> None:
        """
        Args:
            key: 128-bit key of this link's random numbers.
            correlation: rho between consecutive slots, -1 < rho <= 1.
            block: number of slots to draw at once; the number is part of the process's definition: another number
                changes the fading of a key. A short block suits a link that is read a few hundred slots at a time.

        Raises:
            ValueError: key, correlation or block is out of range.
        """
        if not block > 1:
            raise ValueError(f"block must be at least 2 slots, got {block}")
        if not -1.0 < correlation <= 1.0:
            raise ValueError(f"correlation must be above -1 and at most 1, got {correlation}")
        self._grids = grids(correlation, block)
        super().__init__(key, correlation, block, block, len(self._grids))

    def gain(self, first_slot: int, count: int) -> npt.NDArray[np.complex128]:
        """Return [count] the complex h of the slots first_slot, first_slot + 1, ...

        Raises:
            ValueError: the slot or the count is negative.
        """
        real, imaginary = self._read(first_slot, count)
        return real + 1j * imaginary

    @staticmethod
    def powers(numbers: FloatArray) -> FloatArray:
        real, imaginary = numbers[:, 0], numbers[:, 1]
        return np.asarray(real * real + imaginary * imaginary)

    def _alike(self, level: int) -> tuple[Hashable, int]:
        return self.slots, max(1, _POINTS_AT_ONCE // self.slots)

    def _kept(self, level: int) -> int:
        # a whole block is read to its end; short blocks are read across their edges
        return 1 if level == 0 and self.slots == BLOCK else KEPT

    @staticmethod
    def _drawn(level: int, places: Sequence[tuple["LinkFading", int]]) -> FloatArray:
        """Return pages [n, 2, block] of links with blocks of equal size."""
        grids_of = [link._grids[level] for link, _ in places]
        pages = np.empty((len(places), 2, places[0][0].slots))
        for rng, page in zip(generators(level, places), pages, strict=True):
            rng.standard_normal(out=page)
        pages *= np.array([grid.innovation_std for grid in grids_of])[:, None, None]
        between = [i for i, grid in enumerate(grids_of) if grid.weights is not None]
        if len(between) == len(places):
            return _bridged(level, places, pages)
        if between:
            pages[between] = _bridged(level, [places[i] for i in between], pages[between])
        return pages


def _bridged(level: int, places: Sequence[tuple[LinkFading, int]], noise: FloatArray) -> FloatArray:
    """Build paths [n, 2, block] from noise, each between two points of the next coarser grid."""
    block = noise.shape[-1]
    hold(level + 1, [(link, at // block) for link, index in places for at in (index, index + 1)])
    left, right = np.empty((2, len(places), 2, 1))
    for i, (link, index) in enumerate(places):
        left[i, :, 0], right[i, :, 0] = link._point(level + 1, index), link._point(level + 1, index + 1)
    grids_of = [link._grids[level] for link, _ in places]
    correlation = np.array([grid.correlation for grid in grids_of])
    free = filtered(noise, correlation, correlation[:, None, None] * left)
    # every grid here has weights: only a grid of independent points, which are not bridged, has none
    weights = np.stack([grid.weights for grid in grids_of if grid.weights is not None])
    pages = np.empty_like(noise)
    pages[:, :, :1] = left
    np.multiply(weights[:, None], right - free[:, :, -1:], out=pages[:, :, 1:])
    pages[:, :, 1:] += free[:, :, :-1]
    return pages
