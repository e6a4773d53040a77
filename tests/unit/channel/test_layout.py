"""Test the number and distances of sites in hexagonal layouts, and wrap-around distances on their torus."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgefl.channel.layout import Wraparound, displacement_m, hexagonal_sites, site_count

ISD_M = 200.0
RINGS = [0, 1, 2, 3]
SEED = 5


def copies(rings: int, reach: int) -> np.ndarray:
    """Return translations [C, 2] m t1 + n t2 with |m|, |n| up to reach, from the definition."""
    angle = math.atan2(math.sqrt(0.75) * rings, rings + 1 + 0.5 * rings)
    step_m = ISD_M * math.sqrt(1 + 3 * rings * (rings + 1))
    t1, t2 = (step_m * np.array([math.cos(turn), math.sin(turn)]) for turn in (angle, angle + math.pi / 3))
    numbers = range(-reach, reach + 1)
    return np.array([m * t1 + n * t2 for m in numbers for n in numbers])


def brute_distance_m(positions: np.ndarray, sites: np.ndarray, translations: np.ndarray) -> np.ndarray:
    """Return the distance [n, S] to each site's nearest copy, by trying all copies."""
    plain = displacement_m(positions, sites)
    return np.linalg.norm(plain[:, :, None, :] - translations, axis=-1).min(axis=-1)


def test_counts() -> None:
    assert [site_count(rings) for rings in RINGS] == [1, 7, 19, 37]
    assert [len(hexagonal_sites(rings, ISD_M)) for rings in RINGS] == [1, 7, 19, 37]


def test_centre_first_then_counter_clockwise_from_the_x_axis() -> None:
    sites = hexagonal_sites(2, ISD_M)
    np.testing.assert_array_equal(sites[0], 0.0)
    angles = np.degrees(np.arctan2(sites[1:, 1], sites[1:, 0])) % 360
    np.testing.assert_allclose(angles, [*range(0, 360, 60), *range(0, 360, 30)], atol=1e-9)
    # ring 2 has corners at twice the distance, and the sites between them at sqrt(3)
    np.testing.assert_allclose(
        np.linalg.norm(sites[1:], axis=1) / ISD_M, [1] * 6 + [2, math.sqrt(3)] * 6, rtol=1e-12
    )


def test_more_rings_begin_with_the_same_sites() -> None:
    np.testing.assert_array_equal(hexagonal_sites(3, ISD_M)[:19], hexagonal_sites(2, ISD_M))


@pytest.mark.parametrize("rings", RINGS[1:])
def test_neighbours_are_one_isd_apart(rings: int) -> None:
    sites = hexagonal_sites(rings, ISD_M)
    distance = np.linalg.norm(displacement_m(sites, sites), axis=-1)
    np.testing.assert_allclose(np.sort(distance, axis=1)[:, 1], ISD_M, rtol=1e-12)


@pytest.mark.parametrize("rings", RINGS)
def test_torus_every_site_sees_the_same_distances(rings: int) -> None:
    sites = hexagonal_sites(rings, ISD_M)
    seen = np.sort(np.linalg.norm(Wraparound(rings, ISD_M).displacement_m(sites, sites), axis=-1), axis=1)
    np.testing.assert_allclose(seen, np.broadcast_to(seen[0], seen.shape), atol=1e-9)
    # at the centre, the distances are the same without wrap-around
    np.testing.assert_allclose(seen[0], np.sort(np.linalg.norm(sites, axis=1)), atol=1e-9)


def test_without_wraparound_the_edge_sees_something_else() -> None:
    sites = hexagonal_sites(1, ISD_M)
    seen = np.sort(np.linalg.norm(displacement_m(sites, sites), axis=-1), axis=1)
    assert np.abs(seen[1:] - seen[0]).max() > 0.5 * ISD_M


@pytest.mark.parametrize("rings", RINGS)
def test_nearest_of_the_six_shifted_clusters(rings: int) -> None:
    # wrap-around distance is usually defined by the nearest site in the layout and its six shifted copies
    rng = np.random.default_rng(SEED)
    sites = hexagonal_sites(rings, ISD_M)
    # places are uniform over the inscribed circles of the cells
    radius, angle = 0.5 * ISD_M * np.sqrt(rng.random(3000)), 2 * math.pi * rng.random(3000)
    positions = sites[rng.integers(len(sites), size=3000)] + np.stack(
        [radius * np.cos(angle), radius * np.sin(angle)], axis=1
    )
    around = copies(rings, 1)
    around = around[np.linalg.norm(around, axis=1) < 1.01 * Wraparound(rings, ISD_M).step_m]
    assert len(around) == 7
    found = np.linalg.norm(Wraparound(rings, ISD_M).displacement_m(positions, sites), axis=-1)
    np.testing.assert_allclose(found, brute_distance_m(positions, sites, around), atol=1e-9)


@pytest.mark.parametrize("rings", RINGS)
def test_nearest_of_all_copies_anywhere(rings: int) -> None:
    wraparound = Wraparound(rings, ISD_M)
    positions = np.random.default_rng(SEED).uniform(-3, 3, (200, 2)) * wraparound.step_m
    sites = hexagonal_sites(rings, ISD_M)
    displacement = wraparound.displacement_m(positions, sites)
    expected = brute_distance_m(positions, sites, copies(rings, 6))
    np.testing.assert_allclose(np.linalg.norm(displacement, axis=-1), expected, atol=1e-9)
    # the displacement points to a copy of the site, so it differs from the plain displacement by m t1 + n t2
    t2, t1 = copies(rings, 1)[[5, 7]]
    taken_off = (displacement_m(positions, sites) - displacement).reshape(-1, 2)
    numbers = np.linalg.solve(np.stack([t1, t2], axis=1), taken_off.T)
    np.testing.assert_allclose(numbers, np.rint(numbers), atol=1e-9)


@pytest.mark.parametrize(("dtype", "tolerance_m"), [(np.float64, 1e-9), (np.float32, 1e-3)])
def test_square_distance_is_that_of_the_displacement(dtype: type, tolerance_m: float) -> None:
    # single precision: coordinates below 3 steps (2616 m) round by 1.2e-4 m, and a few of these errors add up
    wraparound = Wraparound(2, ISD_M)
    sites = hexagonal_sites(2, ISD_M)
    positions = np.random.default_rng(SEED).uniform(-2, 2, (2000, 2)) * wraparound.step_m
    apart = wraparound.aligned_axes(positions.T)[:, :, None] - wraparound.aligned_axes(sites.T)[:, None]
    square = wraparound.square_distance(apart.astype(dtype))
    assert square.dtype == dtype
    # next to a site, rounding may make the square negative
    distance = np.sqrt(np.maximum(square, 0.0))
    expected = np.linalg.norm(wraparound.displacement_m(positions, sites), axis=-1)
    np.testing.assert_allclose(distance, expected, atol=tolerance_m)


def test_largest_distance_is_reached_at_the_corners_of_the_world() -> None:
    wraparound = Wraparound(2, ISD_M)
    # the places nearest to one site form a hexagon of circumradius step / sqrt(3)
    grid = np.stack(np.meshgrid(*[np.linspace(-1, 1, 801) * wraparound.step_m] * 2), axis=-1).reshape(-1, 2)
    farthest = np.linalg.norm(wraparound.displacement_m(grid, [[0.0, 0.0]]), axis=-1).max()
    spacing = wraparound.step_m / 400
    assert wraparound.largest_distance_m - spacing < farthest <= wraparound.largest_distance_m * (1 + 1e-12)


@given(x=st.floats(-1e4, 1e4), y=st.floats(-1e4, 1e4), m=st.integers(-5, 5), n=st.integers(-5, 5))
def test_the_world_repeats(x: float, y: float, m: int, n: int) -> None:
    sites = hexagonal_sites(1, ISD_M)
    t2, t1 = copies(1, 1)[[5, 7]]
    here, there = (
        np.linalg.norm(Wraparound(1, ISD_M).displacement_m([place], sites), axis=-1)
        for place in (np.array([x, y]), np.array([x, y]) + m * t1 + n * t2)
    )
    np.testing.assert_allclose(here, there, atol=1e-6)
