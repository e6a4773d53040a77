"""Polygons as trapezoids between horizontal lines, to draw exactly uniform points in them."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

MOST_CORNERS = 20_000  # time grows with the square of this: a few seconds


@dataclass(frozen=True, eq=False)
class Trapezoids:
    """Non-overlapping trapezoids with horizontal sides.

    Attributes:
        low_m, high_m: [n] height of the lower and the upper side.
        left_m, right_m: [2, n] ends of the lower and the upper side.
    """

    low_m: np.ndarray
    high_m: np.ndarray
    left_m: np.ndarray
    right_m: np.ndarray

    @property
    def areas_m2(self) -> np.ndarray:
        """[n] area of each trapezoid."""
        return (self.high_m - self.low_m) * (self.right_m - self.left_m).mean(axis=0)

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        """Return [2, n] points uniform in area, from [3, n] uniform numbers in (0, 1), by exact inversion."""
        total = np.cumsum(self.areas_m2)
        one = np.minimum(np.searchsorted(total, uniform[0] * total[-1], side="right"), len(total) - 1)
        lower, upper = (self.right_m[side, one] - self.left_m[side, one] for side in (0, 1))
        # widths grow linearly with height: w(h) = lower + h (upper - lower), h in 0 to 1. The root of
        # the distribution function, in the form without a difference of nearly equal numbers
        wanted = uniform[1] * (lower + upper)
        height = wanted / (lower + np.sqrt(lower**2 + (upper - lower) * wanted))
        left = self.left_m[0, one] + height * (self.left_m[1, one] - self.left_m[0, one])
        width = lower + height * (upper - lower)
        y = self.low_m[one] + height * (self.high_m[one] - self.low_m[one])
        return np.stack([left + uniform[2] * width, y])


def trapezoids(rings: Iterable[npt.ArrayLike]) -> Trapezoids:
    """Cut one or several polygons, with or without holes, along horizontal lines through all corners.

    A point is inside if a line from it to infinity crosses the rings an odd number of times: a ring within
    another is a hole.

    Args:
        rings: each [corners, 2], m; the last corner is joined to the first, which may be repeated.

    Raises:
        ValueError: fewer than three corners or more than MOST_CORNERS, no area, or sides that cross.
    """
    loops = [np.asarray(ring, dtype=float).reshape(-1, 2) for ring in rings]
    for loop in loops:
        if len(np.unique(loop, axis=0)) < 3:
            raise ValueError(f"a polygon needs at least three corners, got {loop.tolist()}")
    begin = np.concatenate(loops)
    if len(begin) > MOST_CORNERS:
        raise ValueError(f"{len(begin):,} corners are more than {MOST_CORNERS:,}: simplify the polygon")
    end = np.concatenate([np.roll(loop, -1, axis=0) for loop in loops])
    upwards = begin[:, 1] < end[:, 1]
    low, high = np.where(upwards[:, None], begin, end), np.where(upwards[:, None], end, begin)
    sides = low[:, 1] < high[:, 1]  # horizontal sides bound no area
    low, high = low[sides], high[sides]
    lines = np.unique(begin[:, 1])
    parts: list[np.ndarray] = []
    for y0, y1 in pairwise(lines.tolist()):
        crossing = (low[:, 1] <= y0) & (high[:, 1] >= y1)
        a, b = low[crossing], high[crossing]
        slope = (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
        # a corner on a line is used as it is, not computed
        x0 = np.where(a[:, 1] == y0, a[:, 0], a[:, 0] + slope * (y0 - a[:, 1]))
        x1 = np.where(b[:, 1] == y1, b[:, 0], a[:, 0] + slope * (y1 - a[:, 1]))
        order = np.argsort(x0 + x1, kind="stable")
        x0, x1 = x0[order], x1[order]
        size = np.abs(x0).max() + np.abs(x1).max() if len(x0) else 0.0
        if (np.diff(x0) < -1e-9 * size).any() or (np.diff(x1) < -1e-9 * size).any():
            raise ValueError(
                f"sides of the polygon cross between y = {y0:g} and {y1:g} m; remove the crossing"
            )
        parts += [np.array([y0, y1, x0[i], x1[i], x0[i + 1], x1[i + 1]]) for i in range(0, len(x0), 2)]
    cut = np.array(parts).reshape(-1, 6).T
    made = Trapezoids(cut[0], cut[1], cut[2:4], np.maximum(cut[4:6], cut[2:4]))
    if not made.areas_m2.sum() > 0:
        raise ValueError("the polygon has no area")
    return made
