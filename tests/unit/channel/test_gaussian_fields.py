"""Test the exact distribution of the constructed Gaussian fields, their errors, and their independence."""

import math
from typing import get_args

import numpy as np
import pytest
from scipy import fft

from edgefl.channel.field_stack import FieldStack
from edgefl.channel.gaussian_fields import NODES, CorrelationLaw, GaussianFields

SEED = 3


def places(count: int, radius_m: float) -> np.ndarray:
    """Return places [count, 2] uniformly distributed in a disc."""
    rng = np.random.default_rng(SEED)
    radius, angle = radius_m * np.sqrt(rng.random(count)), 2 * math.pi * rng.random(count)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def node_correlation(fields: GaussianFields) -> np.ndarray:
    """Return the correlation [size, size] of two nodes by their offset around the torus."""
    amplitude = fields.law.amplitude.astype(float)
    return fft.irfft2(amplitude**2, s=(len(amplitude), len(amplitude)))


def correlation_of(fields: GaussianFields, here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the exact covariance [n] of the field at two places: the sum of w_i w_j C(node_i - node_j)."""
    nodes = node_correlation(fields)
    total = np.zeros(len(here))
    first, second = (FieldStack([fields]).places(places_m) for places_m in (here, there))
    for i, weight in zip(first.nodes[:, 0], first.weights[:, 0].astype(float), strict=True):
        for j, other in zip(second.nodes[:, 0], second.weights[:, 0].astype(float), strict=True):
            rows, columns = i // fields.width - j // fields.width, i % fields.width - j % fields.width
            total += weight * other * nodes[rows, columns]
    return total


def directions(count: int) -> np.ndarray:
    angle = 2 * math.pi * np.random.default_rng(SEED + 1).random(count)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


@pytest.mark.parametrize(
    ("correlation_m", "radius_m"), [(10.0, 1.0), (10.0, 200.0), (50.0, 200.0), (6.0, 61.0)]
)
@pytest.mark.parametrize("law", get_args(CorrelationLaw))
def test_fields_are_standard_normal_everywhere(
    law: CorrelationLaw, correlation_m: float, radius_m: float
) -> None:
    fields = GaussianFields(keys=[1], correlation_m=correlation_m, area_radius_m=radius_m, stream=0, law=law)
    # the square root of a negative value in the spectrum would be nan
    assert np.isfinite(fields.law.amplitude).all()
    here = places(4000, radius_m)
    # weights are squared in single precision
    np.testing.assert_allclose(correlation_of(fields, here, here), 1.0, rtol=0, atol=1e-6)


@pytest.mark.parametrize("correlation_m", [10.0, 13.0])
@pytest.mark.parametrize(
    ("lag", "too_high"),
    [(0.05, 0.025), (0.1, 0.025), (0.15, 0.012), (0.5, 0.012), (1.0, 0.012), (2.0, 0.012)],
)
def test_correlation_falls_exponentially(correlation_m: float, lag: float, too_high: float) -> None:
    """The exact correlation, computed without sampling, is as close to exp(-d / d_corr) as GaussianFields states."""
    fields = GaussianFields(keys=[1], correlation_m=correlation_m, area_radius_m=200.0, stream=0)
    here = places(20_000, 100.0)
    deviation = correlation_of(fields, here, here + lag * correlation_m * directions(20_000)) - math.exp(-lag)
    # the mean of 20,000 deviations of about 0.03 is known to 2e-4
    assert 0 < deviation.mean() < too_high
    assert math.sqrt(np.mean(deviation**2)) < 0.035


@pytest.mark.parametrize("lag", [0.1, 0.25, 0.5, 1.0, 1.5])
def test_a_smooth_fields_correlation_falls_like_a_gaussian(lag: float) -> None:
    """A smooth field's correlation is as close to a Gaussian as GaussianFields states, and a rough field's is not."""
    fields, rough = (
        GaussianFields(keys=[1], correlation_m=50.0, area_radius_m=200.0, stream=0, law=law)
        for law in ("gaussian", "exponential")
    )
    here = places(3000, 100.0)
    there = here + lag * 50.0 * directions(3000)
    assert np.abs(correlation_of(fields, here, there) - math.exp(-(lag**2))).max() < 0.003
    if lag != 1.0:  # at this distance the two correlation laws agree
        assert np.abs(correlation_of(rough, here, there) - math.exp(-(lag**2))).max() > 0.01


def test_a_law_makes_another_field_of_the_same_key() -> None:
    rough, smooth, again = (
        GaussianFields(keys=[1], correlation_m=50.0, area_radius_m=80.0, stream=2, law=law)
        for law in ("exponential", "gaussian", "gaussian")
    )
    assert smooth == again
    assert smooth != rough


def test_fields_are_continuous_across_cells() -> None:
    fields = GaussianFields(keys=[1, 2], correlation_m=10.0, area_radius_m=50.0, stream=0)
    spacing_m = 10.0 / NODES
    edge = np.stack([np.full(200, 3 * spacing_m), np.linspace(-30, 30, 200)], axis=1)
    step_m = 1e-7
    left, right = (FieldStack([fields]).at(edge + np.array([move_m, 0.0])) for move_m in (-step_m, step_m))
    # values at nodes are between -6 and 6, so slopes are below 2 x 6 per spacing; values round in single precision
    np.testing.assert_allclose(left, right, rtol=0, atol=2 * step_m * 12 / spacing_m + 1e-5)


def test_streams_and_keys_name_different_fields() -> None:
    positions = places(10, 50.0)

    def read(key: int, stream: int) -> np.ndarray:
        fields = GaussianFields(keys=[key], correlation_m=10.0, area_radius_m=50.0, stream=stream)
        return FieldStack([fields]).at(positions)[0, :, 0]

    values = [read(1, 0), read(1, 1), read(2, 0), read(2**127, 0)]
    assert len({tuple(value) for value in values}) == 4
    np.testing.assert_array_equal(read(1, 0), values[0])
