"""Test that points drawn in polygons are uniform in area, for any corners."""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.places import polygons
from edgefl.places.polygons import Trapezoids, trapezoids, union

DRAWS = 40_000
STANDARD_ERRORS = 4.5  # of some 60 fractions, one exceeds this limit with probability 4e-4

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


def turning_area(ring: np.ndarray) -> float:
    """Return the area within a ring, negative if the ring runs clockwise (Green's theorem)."""
    after = np.roll(ring, -1, axis=0)
    return float((ring[:, 0] * after[:, 1] - after[:, 0] * ring[:, 1]).sum() / 2)


def draw(shape: Trapezoids, count: int = DRAWS) -> np.ndarray:
    return shape.points_m(np.random.default_rng(4).random((3, count)))


def inside(rings: list[list[tuple[float, float]]], points: np.ndarray) -> np.ndarray:
    """Return whether points are inside, by the angle that each ring turns around a point: 0 or a full turn."""
    odd = np.zeros(points.shape[1], bool)
    for ring in rings:
        ways = np.array(ring, float)[:, :, None] - points
        angles = np.arctan2(ways[:, 1], ways[:, 0])
        turns = np.roll(angles, -1, axis=0) - angles
        total = ((turns + math.pi) % (2 * math.pi) - math.pi).sum(axis=0)
        odd ^= np.abs(total) > math.pi
    return odd


def clipped_area(ring: list[tuple[float, float]], normal: tuple[float, float], offset: float) -> float:
    """Return the area of a polygon where normal . x <= offset (Sutherland and Hodgman, exact for any polygon)."""
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
    """The share of points in each of ten half planes is its share of the area, to within the standard error."""
    rings = SHAPES[name]
    points = draw(trapezoids([rings]))
    assert inside(rings, points).all()
    weights = [-1.0 if ring is HOLE else 1.0 for ring in rings]
    whole = sum(weight * shoelace(ring) for weight, ring in zip(weights, rings, strict=True))
    for turn in range(10):
        normal = (math.cos(0.3 + turn), math.sin(0.3 + turn))
        along = normal[0] * points[0] + normal[1] * points[1]
        # the offset is taken from the other half of the draws
        offset = float(np.quantile(along[::2], 0.2 + 0.06 * turn))
        part = sum(w * clipped_area(ring, normal, offset) for w, ring in zip(weights, rings, strict=True))
        share = part / whole
        error = math.sqrt(share * (1 - share) / (DRAWS / 2))
        assert np.mean(along[1::2] <= offset) == pytest.approx(share, abs=STANDARD_ERRORS * error)


def test_a_trapezoid_by_hand() -> None:
    """A trapezoid with a base of 1 and a top of 3 has half its area below (sqrt 5 - 1) / 2 of its height."""
    shape = trapezoids([[[(0, 0), (1, 0), (3, 2), (0, 2)]]])
    assert shape.areas_m2 == pytest.approx([4.0])
    height = (math.sqrt(5) - 1) / 2
    point = shape.points_m(np.array([[0.5], [0.5], [0.25]]))
    assert point[:, 0] == pytest.approx([0.25 * (1 + 2 * height), 2 * height])


def test_many_corners() -> None:
    """A regular polygon of 400 corners has its exact area and nearly a disc's mean square distance, R^2 / 2."""
    angles = np.linspace(0, 2 * math.pi, 401)[:-1]
    shape = trapezoids([[100 * np.stack([np.cos(angles), np.sin(angles)], axis=1)]])
    assert shape.areas_m2.sum() == pytest.approx(200 * 100**2 * math.sin(2 * math.pi / 400))
    square = (draw(shape) ** 2).sum(axis=0) / 100**2  # on [0, 1]: uniform for a disc, and here to 1e-4
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


def even_odd(rings: list[Any], points: np.ndarray) -> np.ndarray:
    """Return whether a ray to the east of each point [n] crosses the rings an odd number of times."""
    odd = np.zeros(len(points), bool)
    for ring in rings:
        corners = np.array(ring, float)
        for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, -1, axis=0), strict=True):
            if y0 != y1:
                at = x0 + (points[:, 1] - y0) * (x1 - x0) / (y1 - y0)
                odd ^= ((points[:, 1] >= min(y0, y1)) & (points[:, 1] < max(y0, y1))) & (points[:, 0] < at)
    return odd


def area_of_faces(shapes: list[list[Any]], cells: int) -> float:
    """Return the area of the union on a lattice of 6 x 6, found from centres of small cells without any library."""
    middles = (np.stack(np.meshgrid(np.arange(cells), np.arange(cells)), -1).reshape(-1, 2) + 0.5) * 6 / cells
    middles += 1e-4 * np.array([np.pi, np.e])  # offsets keep centres off the diagonals
    inside = np.any([even_odd(rings, middles) for rings in shapes], axis=0)
    return float(inside.mean() * 36)


@pytest.mark.parametrize("seed", range(40))
def test_the_union_is_what_any_polygon_encloses_an_odd_number_of_times(seed: int) -> None:
    """The union of random polygons, which cross, share sides and retrace sides, has the area found by counting cells.

    A side, at most 8.5 long, miscounts at most half of its cells of width 0.02; the errors of 60 sides vary in sign.
    """
    rng = np.random.default_rng(seed)
    shapes = [
        [rng.integers(0, 7, (rng.integers(4, 9), 2)).astype(float) for _ in range(rng.integers(1, 4))]
        for _ in range(3)
    ]
    counted = area_of_faces(shapes, 300)
    assert trapezoids(union(shapes).polygons).areas_m2.sum() == pytest.approx(counted, abs=0.12)


@pytest.mark.parametrize(
    ("shapes", "area", "repaired", "dropped"),
    [
        ([[SQUARE, HOLE]], 36.0 - 10, 0, 0),  # both rings run counter-clockwise
        ([[SQUARE], [SQUARE]], 36.0, 0, 0),  # the same feature twice
        ([[SQUARE], [[(0, 0), (2, 0), (2, 2), (0, 2)]]], 36.0, 0, 0),  # a park within a district
        ([[SQUARE], [[(2, 2), (5, 2), (5, 5), (2, 5)]]], 36.0 + 9 - 1, 0, 0),  # two features that overlap
        ([[SQUARE], [[(3, -3), (6, -3), (6, 3), (3, 3)]]], 54.0, 0, 0),  # neighbours
        ([[SQUARE, [(-3, -1), (-1, -1), (-1, 1), (-3, 1)]]], 32.0, 1, 0),  # a hole that touches the outline
        ([[SQUARE, [(2, 0), (4, 0), (4, 1), (2, 1)]]], 36.0 - 1 + 1, 1, 0),  # a hole that crosses the outline
        ([[[(0, 0), (2, 2), (2, 0), (0, 2)]]], 2.0, 1, 0),  # a bow tie
        ([[SQUARE, [(0, 0), (1, 1)]], [FAR]], 36.0 + 2, 0, 1),  # a hole with two corners
        (
            [[FAR], [[(0, 0), (1, 1)], [(0, 0), (1, 0), (0, 1)]]],
            2.0,
            0,
            2,
        ),  # an outline of two corners, and its hole
        ([[[(0, 0), (4, 0), (4, 4), (4, 9), (4, 4), (0, 4)]]], 16.0, 1, 0),  # a spike
    ],
)
def test_unions_by_hand(shapes: list[Any], area: float, repaired: int, dropped: int) -> None:
    made = union(shapes)
    assert (made.repaired, made.dropped) == (repaired, dropped)
    assert trapezoids(made.polygons).areas_m2.sum() == pytest.approx(area)
    assert sum(turning_area(ring) for rings in made.polygons for ring in rings) == pytest.approx(area)
    draws = trapezoids(made.polygons).points_m(np.random.default_rng(7).random((3, 2000)))
    assert np.any([even_odd(rings, draws.T) for rings in shapes], axis=0).mean() > 0.998


@pytest.mark.parametrize("shapes", [[], [[[(0, 0), (1, 1)]]], [[[(0, 0), (1, 1), (2, 2)]]], [[[]]]])
def test_a_union_of_nothing_is_refused(shapes: list[Any]) -> None:
    with pytest.raises(ValueError, match="no area"):
        union(shapes)


def test_what_takes_too_much_memory_or_time_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polygons, "MOST_TRAPEZOIDS", 5)
    with pytest.raises(ValueError, match="more than 5 trapezoids: simplify"):
        trapezoids([[COMB]])
    monkeypatch.setattr(polygons, "MOST_COMPARED", 1)
    with pytest.raises(ValueError, match="cross 2 times: simplify"):
        union([[[(0, 0), (2, 2), (2, 0), (0, 2)]]])


def test_a_city_has_no_limit_of_corners() -> None:
    """Sixty overlapping districts of 500 corners each, 30,000 in one file, have the exact area."""
    angles = np.linspace(0, 2 * math.pi, 501)[:-1]
    disc = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    made = union([[100 * disc + [150.0 * number, 0]] for number in range(60)])
    lens = 2 * 100**2 * math.acos(0.75) - 75 * math.sqrt(4 * 100**2 - 150**2)  # two discs 150 m apart
    area = trapezoids(made.polygons).areas_m2.sum()
    assert area == pytest.approx(60 * math.pi * 100**2 - 59 * lens, rel=1e-4)
