"""Test the stationary law of random waypoint on a disc. Seeds are fixed; a correct program fails for 1 seed in 1,000.

On the disc of radius 1, legs have uniform ends. A device at a random time is on a leg with probability proportional
to the leg's duration, so at constant speed the density at a place is proportional to the length of all paths through
it. The legs through a place x in direction u, with distances a1 ahead and a2 behind to the border, have one end
behind x and the other end ahead. In polar coordinates around x, the measure of such legs is

    integral over u in a circle of  integral_0^a1 integral_0^a2 (s + t) ds dt = a1 a2 (a1 + a2) / 2.

On the disc a1 a2 = 1 - r^2, and a1 + a2 = 2 sqrt(1 - r^2 cos^2 phi) is the chord, so that the density is
proportional to (1 - r^2) E(r), where E is the complete elliptic integral of the second kind.
"""

import math

import numpy as np
import pytest
from scipy import integrate, special, stats

from edgefl.channel.geometry import sample_ring
from edgefl.mobility import Movement
from edgefl.mobility.random_waypoint import MEAN_LEG, RandomWaypoint
from edgefl.rng import Streams

DEVICES = 20_000
RADIUS_M = 100.0
SEED = 3
SIGNIFICANCE = 1e-3
STANDARD_ERRORS = 4
SHORT_S = 1e-3


def density(r: float) -> float:
    """Return the density per area on the unit disc; SciPy's elliptic integral takes the square of the modulus."""
    return (1 - r**2) * float(special.ellipe(r**2))


def radial_law(r: np.ndarray) -> np.ndarray:
    """Return the probability that a walking device is within r of the centre, by quadrature."""
    grid = np.linspace(0.0, 1.0, 2001)
    mass = integrate.cumulative_simpson([2 * math.pi * s * density(s) for s in grid], x=grid, initial=0)
    return np.interp(r, grid, mass / mass[-1])


def start(model: RandomWaypoint, seed: int = SEED) -> Movement:
    streams = Streams(seed)
    dropped = sample_ring(streams("drop"), DEVICES, inner_radius_m=0.0, outer_radius_m=RADIUS_M)
    return model.start(dropped, cell_radius_m=RADIUS_M, min_distance_m=0.0, streams=streams)


def distances(movement: Movement, time_s: float) -> np.ndarray:
    return np.linalg.norm(movement.positions_m(time_s), axis=1) / RADIUS_M


def test_the_law_is_the_published_one() -> None:
    """The centre has density 45 / 64 per area (Hyytia et al. 2006), with a mean leg of 128 / (45 pi)."""
    total, _ = integrate.quad(lambda s: 2 * math.pi * s * density(s), 0, 1)
    assert density(0.0) / total == pytest.approx(45 / 64, rel=1e-9)
    # the integral over directions is 4 times the density, and over all places it is area^2 x mean leg
    assert 4 * total == pytest.approx(math.pi**2 * MEAN_LEG, rel=1e-9)


@pytest.mark.parametrize("time_s", [0.0, 3.0, 500.0])
def test_steady_state_is_there_from_the_beginning(time_s: float) -> None:
    """The stationary law does not depend on the speed, so it also holds for slow devices."""
    movement = start(RandomWaypoint(area_factor=1.0))
    r = distances(movement, time_s)
    assert stats.kstest(r, radial_law).pvalue > SIGNIFICANCE
    slow = movement.doppler_speeds_m_s() < 3.0
    assert stats.kstest(r[slow], radial_law).pvalue > SIGNIFICANCE
    angle = np.arctan2(*movement.positions_m(time_s).T)
    assert stats.kstest(angle, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > SIGNIFICANCE


def test_a_uniform_drop_approaches_the_law() -> None:
    movement = start(RandomWaypoint(area_factor=1.0, speed_min_m_s=15, speed_max_m_s=15, steady_state=False))
    assert stats.kstest(distances(movement, 0.0) ** 2, "uniform").pvalue > SIGNIFICANCE
    assert stats.kstest(distances(movement, 0.0), radial_law).pvalue < SIGNIFICANCE**2
    # a leg takes about 6 s, so after a hundred legs positions are independent of the initial positions
    assert stats.kstest(distances(movement, 600.0), radial_law).pvalue > SIGNIFICANCE


def leg_density(length: np.ndarray) -> np.ndarray:
    """Return the density of the distance between two uniform points on the unit disc (disc line picking)."""
    return 4 * length / math.pi * np.arccos(length / 2) - 2 * length**2 / math.pi * np.sqrt(1 - length**2 / 4)


@pytest.mark.parametrize("time_s", [0.0, 90.0])
def test_legs_under_way_in_steady_state(time_s: float) -> None:
    """The next waypoint is farther than d with probability E max(L - d, 0) / E L.

    Legs are observed in proportion to their length L, and the remaining part of a leg is uniformly distributed.
    """
    speed = 10.0
    movement = start(RandomWaypoint(area_factor=1.0, speed_min_m_s=speed, speed_max_m_s=speed))
    length = np.linspace(0, 2, 4001)
    mean = integrate.simpson(length * leg_density(length), x=length)
    assert mean == pytest.approx(MEAN_LEG, rel=1e-6)
    for far in (0.1, 0.5, 1.0, 1.4):
        beyond = integrate.simpson(np.maximum(length - far, 0) * leg_density(length), x=length) / mean
        later_s = time_s + far * RADIUS_M / speed
        velocities = [
            (movement.positions_m(t + SHORT_S) - movement.positions_m(t)) / SHORT_S for t in (time_s, later_s)
        ]
        straight_on = np.isclose(*velocities, atol=1e-6).all(axis=1)
        # 1 in 9,000 devices turns within SHORT_S, so it does not count as walking straight on
        error = math.sqrt(beyond * (1 - beyond) / DEVICES)
        assert abs(straight_on.mean() - beyond) < STANDARD_ERRORS * error + 2 * SHORT_S * speed / RADIUS_M


@pytest.mark.parametrize("time_s", [0.0, 7.0, 400.0])
def test_rests_in_steady_state(time_s: float) -> None:
    """A share pause / (pause + mean leg / speed) of devices rests; places and remaining pauses are uniform."""
    pause_s, speed = 20.0, 6.0
    model = RandomWaypoint(area_factor=1.0, speed_min_m_s=speed, speed_max_m_s=speed, pause_s=pause_s)
    movement = start(model)
    now = movement.positions_m(time_s)
    resting = np.linalg.norm(movement.positions_m(time_s + SHORT_S) - now, axis=1) < speed * SHORT_S / 2
    share = pause_s / (pause_s + 128 * RADIUS_M / (45 * math.pi * speed))
    assert abs(resting.mean() - share) < STANDARD_ERRORS * math.sqrt(share * (1 - share) / DEVICES)
    r = np.linalg.norm(now, axis=1) / RADIUS_M
    assert stats.kstest(r[~resting], radial_law).pvalue > SIGNIFICANCE
    assert stats.kstest(r[resting] ** 2, "uniform").pvalue > SIGNIFICANCE
    # half of the resting devices still rest after half a pause
    stayed = (movement.positions_m(time_s + pause_s / 2) == now).all(axis=1)[resting]
    assert abs(stayed.mean() - 0.5) < STANDARD_ERRORS * 0.5 / math.sqrt(resting.sum())


@pytest.mark.parametrize("time_s", [0.0, 5.0, 700.0])
def test_the_mean_speed_is_the_stationary_one_from_the_beginning(time_s: float) -> None:
    """A device of speed v walks for a share leg / (leg + v pause) of its time; v is uniform, drawn once.

    If speeds were drawn for each leg, the mean would keep falling (Yoon, Liu and Noble, INFOCOM 2003).
    """
    pause_s, slow, fast = 10.0, 1.0, 15.0
    movement = start(RandomWaypoint(area_factor=1.0, speed_min_m_s=slow, speed_max_m_s=fast, pause_s=pause_s))
    leg_m = 128 * RADIUS_M / (45 * math.pi)

    def moment(power: int) -> float:
        return integrate.quad(lambda v: v**power * leg_m / (leg_m + v * pause_s), slow, fast)[0] / (
            fast - slow
        )

    way_m = movement.positions_m(time_s + SHORT_S) - movement.positions_m(time_s)
    speed = np.linalg.norm(way_m, axis=1).mean() / SHORT_S
    error = math.sqrt((moment(2) - moment(1) ** 2) / DEVICES)
    # a device that turns within SHORT_S seems slower by at most its whole path
    turning = 2 * fast**2 * SHORT_S / leg_m
    assert abs(speed - moment(1)) < STANDARD_ERRORS * error + turning


def test_places_at_the_beginning_and_later_have_one_law() -> None:
    """By default devices start in steady state; the two samples contain different devices, and so are independent."""
    movement = start(RandomWaypoint())
    outer = 1.3  # radius of the default area, relative to the cell's radius
    first, later = distances(movement, 0.0)[::2] / outer, distances(movement, 200.0)[1::2] / outer
    assert stats.ks_2samp(first, later).pvalue > SIGNIFICANCE
    # E r = 0.516 is the integral of r times the radial density
    grid = np.linspace(0.0, 1.0, 2001)
    weight = np.array([2 * math.pi * s * density(s) for s in grid])
    mean = integrate.simpson(grid * weight, x=grid) / integrate.simpson(weight, x=grid)
    square = integrate.simpson(grid**2 * weight, x=grid) / integrate.simpson(weight, x=grid)
    for sample in (first, later):
        error = math.sqrt((square - mean**2) / len(sample))
        assert abs(sample.mean() - mean) < STANDARD_ERRORS * error
