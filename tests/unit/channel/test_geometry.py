import numpy as np

from edgefl.channel.geometry import poisson_count, sample_ring, within

SEED = 7


def test_points_lie_on_the_ring() -> None:
    positions = sample_ring(np.random.default_rng(SEED), 10_000, inner_radius_m=10.0, outer_radius_m=250.0)
    distance = np.hypot(*positions.T)
    assert positions.shape == (10_000, 2)
    # cos^2 + sin^2 may differ from 1 by rounding
    assert distance.min() >= 10.0 * (1 - 1e-12)
    assert distance.max() <= 250.0 * (1 + 1e-12)


def test_more_points_leave_the_first_where_they_are() -> None:
    few = sample_ring(np.random.default_rng(SEED), 5, inner_radius_m=0.0, outer_radius_m=1.0)
    many = sample_ring(np.random.default_rng(SEED), 50, inner_radius_m=0.0, outer_radius_m=1.0)
    np.testing.assert_array_equal(few, many[:5])


def test_no_points() -> None:
    rng = np.random.default_rng(SEED)
    assert sample_ring(rng, 0, inner_radius_m=1.0, outer_radius_m=2.0).shape == (0, 2)
    assert poisson_count(rng, density_per_km2=0.0, inner_radius_m=1.0, outer_radius_m=2.0) == 0


def test_within_is_what_hypot_says_at_the_very_border() -> None:
    """`within` agrees with hypot for distances a few roundings from a radius, far from it, and nan."""
    angle = np.random.default_rng(5).uniform(0, 2 * np.pi, 20_000)
    radius_m = 250.0 * (1.0 + np.random.default_rng(6).integers(-8, 9, len(angle)) * 2.0**-52)
    places_m = np.stack([radius_m * np.cos(angle), radius_m * np.sin(angle)], axis=1)
    places_m[:3] = [[1.0, 2.0], [300.0, 0.0], [np.nan, np.nan]]
    expected = np.hypot(places_m[:, 0], places_m[:, 1]) <= 250.0
    assert 1000 < expected.sum() < len(expected) - 1000
    np.testing.assert_array_equal(within(places_m, 250.0), expected)
