"""Unite polygons, and cut them into horizontal trapezoids to draw exactly uniform points in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import shapely

MOST_TRAPEZOIDS = 2_000_000  # maximum number of trapezoids; making them takes 200 bytes of memory each
MOST_COMPARED = 1_000_000_000  # maximum of sides x faces of a self-crossing polygon; compared in seconds
Rings = Sequence[npt.ArrayLike]  # outline and holes of a polygon, each [corners, 2], m


@dataclass(frozen=True, eq=False)
class Trapezoids:
    """Disjoint trapezoids with horizontal sides.

    Attributes:
        low_m, high_m: [n] height of each trapezoid's lower and upper side.
        left_m, right_m: [2, n] left and right ends of each trapezoid's lower and upper side.
        rings_m: the polygons' outlines and holes, each [corners, 2].
    """

    low_m: np.ndarray
    high_m: np.ndarray
    left_m: np.ndarray
    right_m: np.ndarray
    rings_m: Sequence[np.ndarray] = ()

    def drawn(self) -> dict[str, Any]:
        """Return the corners of each ring, in m."""
        return {"points": [(ring.round(1) + 0.0).tolist() for ring in self.rings_m]}

    @property
    def areas_m2(self) -> np.ndarray:
        """Area of each trapezoid [n], m^2."""
        return (self.high_m - self.low_m) * (self.right_m - self.left_m).mean(axis=0)

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        """Return points [2, n] uniform over the area, from uniform numbers [3, n] in (0, 1), by exact inversion."""
        total = np.cumsum(self.areas_m2)
        one = np.minimum(np.searchsorted(total, uniform[0] * total[-1], side="right"), len(total) - 1)
        lower, upper = (self.right_m[side, one] - self.left_m[side, one] for side in (0, 1))
        # the width grows linearly with height: w(h) = lower + h (upper - lower), h in 0 to 1. This form of the
        # distribution function's root avoids subtracting nearly equal numbers
        wanted = uniform[1] * (lower + upper)
        height = wanted / (lower + np.sqrt(lower**2 + (upper - lower) * wanted))
        left = self.left_m[0, one] + height * (self.left_m[1, one] - self.left_m[0, one])
        width = lower + height * (upper - lower)
        y = self.low_m[one] + height * (self.high_m[one] - self.low_m[one])
        return np.stack([left + uniform[2] * width, y])


class _Union(NamedTuple):
    """Disjoint polygons, and how many input polygons were repaired and how many rings were left out."""

    polygons: list[list[np.ndarray]]
    repaired: int
    dropped: int


def union(polygons: Sequence[Rings]) -> _Union:
    """Return the union of polygons.

    A point is inside a polygon if a line from it to infinity crosses the polygon's rings an odd number of times, and
    inside the union if it is inside any polygon. Rings of fewer than three corners are left out; if an outline is
    left out, so are its holes. Outlines run counter-clockwise and holes clockwise, so that a drawing leaves the holes
    empty.

    Raises:
        ValueError: no polygon is left.
    """
    import shapely
    from shapely.geometry.polygon import orient

    kept = [rings for each in polygons if (rings := _with_three_corners(each))]
    dropped = sum(map(len, polygons)) - sum(map(len, kept))
    shapes = [shapely.Polygon(rings[0], rings[1:]) for rings in kept]
    invalid = np.flatnonzero(~shapely.is_valid(shapes)).tolist()
    for number in invalid:
        shapes[number] = _even_odd(kept[number])
    united = shapes if len(shapes) == 1 else [shapely.union_all(shapes)]
    parts = [orient(one) for one in shapely.get_parts(shapely.get_parts(united)) if one.area > 0]
    if not parts:
        raise ValueError("the polygons have no area")
    outlines = [[shapely.get_coordinates(ring) for ring in (one.exterior, *one.interiors)] for one in parts]
    return _Union(outlines, len(invalid), dropped)


def _even_odd(rings: Sequence[np.ndarray]) -> "shapely.Geometry":
    """Return the area that rings enclose an odd number of times, even if rings cross or share sides.

    shapely's make_valid is not used, because it fills a hole that shares a side with the outline.

    Raises:
        ValueError: the rings cross too often.
    """
    import shapely

    lines = [np.concatenate([ring, ring[:1]]) for ring in rings]
    faces = shapely.get_parts(shapely.polygonize([shapely.node(shapely.MultiLineString(lines))]))
    begin, end = np.concatenate([line[:-1] for line in lines]), np.concatenate([line[1:] for line in lines])
    if len(faces) * len(begin) > MOST_COMPARED:
        raise ValueError(f"sides of a polygon cross {len(faces):,} times: simplify it")
    inside = [
        _crossed(begin, end, *at) % 2 == 1 for at in shapely.get_coordinates(shapely.point_on_surface(faces))
    ]
    return shapely.union_all(faces[np.array(inside, dtype=bool)])


def _crossed(begin: np.ndarray, end: np.ndarray, x: float, y: float) -> int:
    """Return the number of sides that a ray running east from a point crosses."""
    crossing = (begin[:, 1] > y) != (end[:, 1] > y)
    (x0, y0), (x1, y1) = begin[crossing].T, end[crossing].T
    return int(np.count_nonzero(x0 + (y - y0) / (y1 - y0) * (x1 - x0) > x))


def _with_three_corners(rings: Rings) -> list[np.ndarray]:
    """Return the rings with at least three different corners; none if the outline has fewer."""
    loops = [np.asarray(ring, dtype=float).reshape(-1, 2) for ring in rings]
    return [loop for loop in loops if _corners(loop) >= 3] if loops and _corners(loops[0]) >= 3 else []


def _corners(loop: np.ndarray) -> int:
    """Return the number of different corners of a ring."""
    return len(set(map(tuple, loop.tolist())))


def trapezoids(polygons: Sequence[Rings]) -> Trapezoids:
    """Cut disjoint polygons into trapezoids, along horizontal lines through all vertices of each polygon.

    Args:
        polygons: the rings of each polygon, outline and holes; the last corner of a ring is joined to the first,
            which may be repeated.

    Raises:
        ValueError: a polygon has under three corners, sides that cross, or no area; or MOST_TRAPEZOIDS is exceeded.
    """
    loops = [np.asarray(ring, dtype=float).reshape(-1, 2) for rings in polygons for ring in rings]
    for loop in loops:
        if _corners(loop) < 3:
            raise ValueError(f"a polygon needs at least three corners, got {loop.tolist()}")
    corners = np.concatenate(loops)
    low, high, line, lines = _sides(polygons, loops, corners[:, 1])
    # list each side once for each pair of neighbouring lines that it crosses
    crossed = line[high] - line[low]
    if crossed.sum() > 2 * MOST_TRAPEZOIDS:
        raise ValueError(f"the area has more than {MOST_TRAPEZOIDS:,} trapezoids: simplify its outline")
    a, b = corners[np.repeat(low, crossed)], corners[np.repeat(high, crossed)]
    within = np.arange(crossed.sum()) - np.repeat(np.cumsum(crossed) - crossed, crossed)
    slab = np.repeat(line[low], crossed) + within
    y0, y1 = lines[slab], lines[slab + 1]
    slope = (b[:, 0] - a[:, 0]) / (b[:, 1] - a[:, 1])
    # a corner on a line is used as it is, not computed
    x0 = np.where(a[:, 1] == y0, a[:, 0], a[:, 0] + slope * (y0 - a[:, 1]))
    x1 = np.where(b[:, 1] == y1, b[:, 0], a[:, 0] + slope * (y1 - a[:, 1]))
    order = np.lexsort((x0 + x1, slab))
    x0, x1, y0, y1, slab = x0[order], x1[order], y0[order], y1[order], slab[order]
    size = np.abs(x0).max(initial=0.0) + np.abs(x1).max(initial=0.0)
    back = (np.diff(x0) < -1e-9 * size) | (np.diff(x1) < -1e-9 * size)
    back &= slab[1:] == slab[:-1]
    if back.any():
        at = back.argmax()
        raise ValueError(
            f"sides of the polygon cross between y = {y0[at]:g} and {y1[at]:g} m; remove the crossing"
        )
    left, right = np.stack([x0[0::2], x1[0::2]]), np.stack([x0[1::2], x1[1::2]])
    made = Trapezoids(y0[0::2], y1[0::2], left, np.maximum(right, left), loops)
    if not made.areas_m2.sum() > 0:
        raise ValueError("the polygon has no area")
    return made


def _sides(
    polygons: Sequence[Rings], loops: Sequence[np.ndarray], y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the lower and upper corners of sides, each corner's line, and the lines' heights.

    Lines are numbered polygon by polygon, upwards. Horizontal sides, which bound no area, are left out.
    """
    sizes = [len(loop) for loop in loops]
    last = np.cumsum(sizes) - 1
    end = np.arange(1, len(y) + 1)
    end[last] = last + 1 - sizes
    polygon = np.repeat(np.repeat(np.arange(len(polygons)), [len(rings) for rings in polygons]), sizes)
    order = np.lexsort((y, polygon))
    new = np.append(True, (np.diff(y[order]) > 0) | (np.diff(polygon[order]) > 0))
    line = np.empty(len(y), dtype=np.int64)
    line[order] = np.cumsum(new) - 1
    begin = np.flatnonzero(line != line[end])
    upwards = line[begin] < line[end[begin]]
    low, high = np.where(upwards, begin, end[begin]), np.where(upwards, end[begin], begin)
    return low, high, line, y[order][new]
