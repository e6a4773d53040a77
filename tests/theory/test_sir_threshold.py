"""Compare the probability of an SIR above a threshold in a Poisson network (Yang et al., 2020) with its formula.

For a user at distance r from its site, with loss d^-4, Rayleigh fading and interferers anywhere in the plane at the
sites' density, P(SIR > theta) = exp(-lambda pi r^2 sqrt(theta) pi / 2) (Haenggi and Ganti, 2009). In the authors'
file no interferer is in the typical cell, so the probability there is larger.
"""

import numpy as np

from edgefl.examples.papers.yang_scheduling import EXPONENT, network

DRAWS, SIGMAS, WINDOW = 3000, 4.0, 6.0  # WINDOW: half width of the area, in 1 / sqrt(density)
R, THETA = 0.3, 10.0


def success(power: np.ndarray, own: float, rng: np.random.Generator) -> np.ndarray:
    """Return whether the SIR exceeds the threshold [draws]; power contains mean powers [draws, interferers]."""
    interference = (power * rng.exponential(size=power.shape)).sum(1)
    return np.asarray(own * rng.exponential(size=len(power)) > THETA * interference)


def test_success_with_interferers_anywhere() -> None:
    rng = np.random.default_rng(5)
    many = rng.poisson(4 * WINDOW**2, DRAWS)
    places = rng.uniform(-WINDOW, WINDOW, (DRAWS, many.max(), 2))
    power = np.linalg.norm(places, axis=2) ** -EXPONENT * (np.arange(many.max()) < many[:, None])
    share = success(power, R**-EXPONENT, rng).mean()
    expected = np.exp(-np.pi * R**2 * np.sqrt(THETA) * np.pi / 2)
    assert abs(share - expected) < SIGMAS * np.sqrt(expected * (1 - expected) / DRAWS)


def test_users_belong_to_the_nearest_site() -> None:
    """The users of the typical cell are far nearer to its site than users of other cells."""
    power = network(np.random.default_rng(6))
    assert power.shape[1] == 100
    assert np.isfinite(power).all()
    assert np.median(power[0]) > 5 * np.median(power[1:])
