"""Points of polygons are uniform in area, wherever their corners lie."""

import math

import numpy as np
import pytest

from edgefl.places.polygons import Trapezoids, trapezoids

DRAWS = 40_000
STANDARD_ERRORS = 4.5  # of some 60 fractions one is beyond it with a probability of 4e-4

TRIANGLE = [(0, 0), (6, 1), (2, 5)]
L_SHAPE = [(0, 0), (4, 0), (4, 1), (1, 1), (1, 3), (0, 3)]
# a comb whose teeth begin and end at different heights
COMB = [(0, 0), (7, 0), (7, 3), (5.5, 0.5), (5, 4), (4, 1), (3, 2.5), (2, 1), (1, 5), (0.5, 0.7)]
SQUARE, HOLE = [(-3, -3), (3, -3), (3, 3), (-3, 3)], [(-1, -2), (2, -1), (1, 2), (-2, 1)]
FAR = [(10, 0), (11, 0), (11, 4)]
SHAPES = {
    "triangle": [TRIANGLE],
    "the other way round, closed": [[*TRIANGLE[::-1], TRIANGLE[-1]]],
    "L": [L_SHAPE],
    "comb": [COMB],
    "hole": [SQUARE, HOLE],
    "two parts": [SQUARE, FAR],
}


def shoelace(ring: list[tuple[float, float]]) -> float:
    x, y = np.array(ring, float).T
    return abs(float(x @ np.roll(y, -1) - y @ np.roll(x, -1))) / 2


def draw(shape: Trapezoids, count: int = DRAWS) -> np.ndarray:
    return shape.points_m(np.random.default_rng(4).random((3, count)))


def inside(rings: list[list[tuple[float, float]]], points: np.ndarray) -> np.ndarray:
    """By the angle that each ring turns around each point, which is 0 outside and a full turn inside."""
    odd = np.zeros(points.shape[1], bool)
    for ring in rings:
        ways = np.array(ring, float)[:, :, None] - points
        angles = np.arctan2(ways[:, 1], ways[:, 0])
        turns = np.roll(angles, -1, axis=0) - angles
        total = ((turns + math.pi) % (2 * math.pi) - math.pi).sum(axis=0)
        odd ^= np.abs(total) > math.pi
    return odd


def clipped_area(ring: list[tuple[float, float]], normal: tuple[float, float], offset: float) -> float:
    """Area of a polygon where normal . x <= offset (Sutherland and Hodgman, exact for area of any polygon)."""
    kept: list[tuple[float, float]] = []
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        da, db = (normal[0] * p[0] + normal[1] * p[1] - offset for p in (a, b))
        if da <= 0:
            kept.append(a)
        if da * db < 0:
            share = da / (da - db)
            kept.append((a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])))
    return shoelace(kept) if len(kept) > 2 else 0.0


@pytest.mark.parametrize("name", SHAPES)
def test_area(name: str) -> None:
    rings = SHAPES[name]
    expected = shoelace(rings[0]) + sum(shoelace(ring) * (-1 if ring is HOLE else 1) for ring in rings[1:])
    assert trapezoids([rings]).areas_m2.sum() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SHAPES)
def test_points_are_uniform_in_area(name: str) -> None:
    """Ten half planes each: the share of points in one is its share of the area, to the standard error."""
    rings = SHAPES[name]
    points = draw(trapezoids([rings]))
    assert inside(rings, points).all()
    weights = [-1.0 if ring is HOLE else 1.0 for ring in rings]
    whole = sum(weight * shoelace(ring) for weight, ring in zip(weights, rings, strict=True))
    for turn in range(10):
        normal = (math.cos(0.3 + turn), math.sin(0.3 + turn))
        along = normal[0] * points[0] + normal[1] * points[1]
        # the offset comes from another half of the draws than the share
        offset = float(np.quantile(along[::2], 0.2 + 0.06 * turn))
        part = sum(w * clipped_area(ring, normal, offset) for w, ring in zip(weights, rings, strict=True))
        share = part / whole
        error = math.sqrt(share * (1 - share) / (DRAWS / 2))
        assert np.mean(along[1::2] <= offset) == pytest.approx(share, abs=STANDARD_ERRORS * error)


def test_a_trapezoid_by_hand() -> None:
    """Widths 1 below and 3 above, height 2: half of the area lies below (sqrt 5 - 1) / 2 of the height."""
    shape = trapezoids([[[(0, 0), (1, 0), (3, 2), (0, 2)]]])
    assert shape.areas_m2 == pytest.approx([4.0])
    height = (math.sqrt(5) - 1) / 2
    point = shape.points_m(np.array([[0.5], [0.5], [0.25]]))
    assert point[:, 0] == pytest.approx([0.25 * (1 + 2 * height), 2 * height])


def test_many_corners() -> None:
    """A regular polygon of 400 corners: its area, and the points' mean square distance R^2 / 2 of a disc."""
    angles = np.linspace(0, 2 * math.pi, 401)[:-1]
    shape = trapezoids([[100 * np.stack([np.cos(angles), np.sin(angles)], axis=1)]])
    assert shape.areas_m2.sum() == pytest.approx(200 * 100**2 * math.sin(2 * math.pi / 400))
    square = (draw(shape) ** 2).sum(axis=0) / 100**2  # uniform in 0 to 1 on a disc; here within 1e-4 of it
    assert square.mean() == pytest.approx(0.5, abs=STANDARD_ERRORS * math.sqrt(1 / 12 / DRAWS) + 1e-4)


@pytest.mark.parametrize(
    ("rings", "message"),
    [
        ([[(0, 0), (1, 1)]], "at least three corners"),
        ([[(0, 0), (1, 1), (0, 0)]], "at least three corners"),
        ([[(0, 0), (1, 1), (2, 2)]], "no area"),
        ([[(0, 0), (2, 0), (1, 0)]], "no area"),
        ([[(0, 0), (4, 4), (4, 0), (0, 3)]], "sides of the polygon cross between y = 0 and 3 m"),
        ([SQUARE, [(0, 0), (9, 1), (9, 2)]], "sides of the polygon cross"),
    ],
)
def test_what_is_no_polygon(rings: list[list[tuple[float, float]]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        trapezoids([rings])
