"""Test the laws of devices' places and of shadowing. Seeds are fixed; a correct program fails for 1 seed in 1,000."""

import math

import numpy as np
from scipy import special

from edgefl.channel.geometry import poisson_count, sample_ring
from edgefl.channel.shadowing import draw_shadowing_db

SEED = 11
POINTS = 20_000
DROPS = 5_000
SIGNIFICANCE = 1e-3
STANDARD_ERRORS = 4
RING = {"inner_radius_m": 10.0, "outer_radius_m": 250.0}


def distance_to_uniform(probabilities: np.ndarray) -> float:
    """Return the Kolmogorov-Smirnov statistic of values that should be uniform on [0, 1]."""
    ordered = np.sort(probabilities)
    steps = np.arange(len(ordered) + 1) / len(ordered)
    return float(max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


def critical(count: int) -> float:
    """Return the critical value of the statistic, by Kolmogorov's limiting distribution."""
    return float(special.kolmogi(SIGNIFICANCE)) / math.sqrt(count)


def test_distance_has_density_2d_over_the_ring() -> None:
    positions = sample_ring(np.random.default_rng(SEED), POINTS, **RING)
    # integral of the density 2 d / (R^2 - d_min^2)
    probability = (np.hypot(*positions.T) ** 2 - 10.0**2) / (250.0**2 - 10.0**2)
    assert distance_to_uniform(probability) < critical(POINTS)


def test_direction_is_uniform_and_independent_of_distance() -> None:
    positions = sample_ring(np.random.default_rng(SEED), POINTS, **RING)
    angle = np.arctan2(positions[:, 1], positions[:, 0])
    assert distance_to_uniform((angle + math.pi) / (2 * math.pi)) < critical(POINTS)
    correlation = np.corrcoef(angle, np.hypot(*positions.T))[0, 1]
    assert abs(correlation) < STANDARD_ERRORS / math.sqrt(POINTS)


def test_counts_are_poisson() -> None:
    rng = np.random.default_rng(SEED)
    counts = np.array([poisson_count(rng, density_per_km2=500.0, **RING) for _ in range(DROPS)])
    mean = 500.0 * math.pi * (0.25**2 - 0.01**2)
    assert abs(counts.mean() - mean) < STANDARD_ERRORS * math.sqrt(mean / DROPS)
    # a Poisson number's variance is its mean, and its fourth central moment is mean + 3 mean^2
    assert abs(counts.var() - mean) < STANDARD_ERRORS * math.sqrt((mean + 2 * mean**2) / DROPS)


def test_shadowing_is_normal() -> None:
    draws = draw_shadowing_db(np.random.default_rng(SEED), POINTS, std_db=4.0)
    assert abs(draws.mean()) < STANDARD_ERRORS * 4.0 / math.sqrt(POINTS)
    assert abs(draws.std() - 4.0) < STANDARD_ERRORS * 4.0 / math.sqrt(2 * POINTS)
    assert distance_to_uniform(special.ndtr(draws / 4.0)) < critical(POINTS)
