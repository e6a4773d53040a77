"""Test stationary laws of mobility in closed form. Seeds are fixed; a correct program fails for 1 seed in 1,000."""

import math

import numpy as np
import pytest
from scipy import stats

from edgefl.channel.geometry import sample_ring
from edgefl.config.clock import HOURS
from edgefl.mobility import Mobility, Movement
from edgefl.mobility.attraction import Attraction
from edgefl.mobility.gauss_markov import GaussMarkov
from edgefl.mobility.highway import Highway
from edgefl.mobility.manhattan import Manhattan
from edgefl.mobility.random_direction import RandomDirection
from edgefl.rng import Streams

DEVICES = 4_000
RADIUS_M = 100.0
SEED = 8
SIGNIFICANCE = 1e-3
STANDARD_ERRORS = 4
SHORT_S = 1e-4


def start(model: Mobility, devices: int = DEVICES) -> Movement:
    streams = Streams(SEED)
    dropped = sample_ring(
        streams("drop"), devices, inner_radius_m=0.0, outer_radius_m=model.area_radius_m(RADIUS_M)
    )
    return model.start(dropped, cell_radius_m=RADIUS_M, min_distance_m=0.0, streams=streams)


def velocities_m_s(movement: Movement, time_s: float) -> np.ndarray:
    return (movement.positions_m(time_s + SHORT_S) - movement.positions_m(time_s)) / SHORT_S


def assert_share(happened: np.ndarray, probability: float, bias: float = 0.0) -> None:
    """Check that the share of independent events equals their probability, up to a known bias."""
    error = math.sqrt(probability * (1 - probability) / len(happened))
    assert abs(happened.mean() - probability) < STANDARD_ERRORS * error + bias


def assert_uniform(values: np.ndarray, low: float, high: float) -> None:
    assert stats.kstest(values, stats.uniform(low, high - low).cdf).pvalue > SIGNIFICANCE


@pytest.mark.parametrize("time_s", [0.0, 40.0, 700.0])
def test_random_direction_is_uniform_in_area_and_direction(time_s: float) -> None:
    # trips of about 160 m in a disc of 130 m radius are reflected, often more than once
    movement = start(RandomDirection(travel_s=20.0, pause_s=5.0))
    at, velocity = movement.positions_m(time_s), velocities_m_s(movement, time_s)
    assert_uniform((at**2).sum(axis=1) / 130.0**2, 0, 1)
    walking = np.linalg.norm(velocity, axis=1) > 0.5
    assert_share(walking, 20.0 / 25.0)
    heading, place = np.arctan2(*velocity.T[::-1]), np.arctan2(*at.T[::-1])
    assert_uniform((heading[walking] / (2 * math.pi)) % 1.0, 0, 1)
    # headings relative to the position would show an effect of the border
    assert_uniform(((heading - place)[walking] / (2 * math.pi)) % 1.0, 0, 1)
    assert_uniform((at[walking] ** 2).sum(axis=1) / 130.0**2, 0, 1)


def test_random_direction_changes_with_the_stated_mean_time() -> None:
    # in a disc of 1,000 m, count only devices that cannot reach the border within 20 s at 1 m/s
    model = RandomDirection(travel_s=20.0, speed_min_m_s=1, speed_max_m_s=1, area_factor=10)
    movement = start(model)
    inner = np.linalg.norm(movement.positions_m(30.0), axis=1) < 980.0
    unchanged = np.isclose(velocities_m_s(movement, 50.0), velocities_m_s(movement, 30.0), atol=1e-6).all(1)
    assert_share(unchanged[inner], math.exp(-1))


# -- Gauss-Markov -------------------------------------------------------------------------------------

ALPHA, MEAN, STD, HEADING_STD = 0.8, 8.0, 1.2, math.radians(45)


def test_gauss_markov_speed() -> None:
    """The speed is normal with the stated mean and standard deviation; reflections keep its correlation alpha^n."""
    movement = start(GaussMarkov(alpha=ALPHA, speed_mean_m_s=MEAN, speed_std_m_s=STD))
    # read speeds in the middle of steps of 1 s; within SHORT_S almost no device reaches the border
    speeds = [np.linalg.norm(velocities_m_s(movement, t), axis=1) for t in (0.5, 100.5, 101.5, 104.5)]
    for speed in speeds:
        assert stats.kstest(speed, stats.norm(MEAN, STD).cdf).pvalue > SIGNIFICANCE
    for later, steps in ((2, 1), (3, 4)):
        expected = ALPHA**steps
        measured = np.corrcoef(speeds[1], speeds[later])[0, 1]
        assert abs(measured - expected) < STANDARD_ERRORS * (1 - expected**2) / math.sqrt(DEVICES)


class HalfSeconds(GaussMarkov):
    step_s = 0.5


def test_gauss_markov_heading() -> None:
    """The turn over n steps is normal with variance 2 std^2 (1 - alpha^n); its mean cosine is exp(-variance / 2)."""
    model = HalfSeconds(alpha=ALPHA, speed_mean_m_s=MEAN, speed_std_m_s=0, area_factor=10)
    movement = start(model)
    headings = [np.arctan2(*velocities_m_s(movement, t).T[::-1]) for t in (2.25, 2.75, 4.25)]
    assert_uniform((headings[0] / (2 * math.pi)) % 1.0, 0, 1)
    # count only devices that cannot reach the border, at 1,000 m, within 2 s at 8 m/s
    inner = np.linalg.norm(movement.positions_m(2.25), axis=1) < 960.0
    for later, steps in ((1, 1), (2, 4)):
        variance = 2 * HEADING_STD**2 * (1 - ALPHA**steps)
        turns = np.cos(headings[later] - headings[0])[inner]
        # Var cos x = (1 + E cos 2x) / 2 - (E cos x)^2
        spread = (1 + math.exp(-2 * variance)) / 2 - math.exp(-variance)
        error = math.sqrt(spread / inner.sum())
        assert abs(turns.mean() - math.exp(-variance / 2)) < STANDARD_ERRORS * error


@pytest.mark.parametrize("time_s", [0.0, 33.3, 500.0])
def test_gauss_markov_is_uniform_in_area(time_s: float) -> None:
    movement = start(GaussMarkov(alpha=ALPHA, speed_mean_m_s=15, speed_std_m_s=5))
    assert_uniform((movement.positions_m(time_s) ** 2).sum(axis=1) / 130.0**2, 0, 1)


class Rightwards(Manhattan):
    left_probability, right_probability = 0.1, 0.6


class Turning(Manhattan):
    left_probability, right_probability = 0.15, 0.35


@pytest.mark.parametrize("time_s", [0.0, 11.0, 400.0])
def test_manhattan_is_uniform_on_the_streets(time_s: float) -> None:
    # the turn probabilities are unequal, and the border is not a whole number of blocks away
    movement = start(Rightwards(block_m=30.0))
    at, velocity = movement.positions_m(time_s), velocities_m_s(movement, time_s)
    east_west = np.abs(velocity[:, 0]) > 0.5
    assert_share(east_west, 0.5)
    for axis, chosen in ((0, east_west), (1, ~east_west)):
        assert_uniform(at[chosen, axis], -RADIUS_M, RADIUS_M)
        assert_share(velocity[chosen, axis] > 0, 0.5)
        # the six streets at odd multiples of 15 m up to 75 m are equally likely
        streets = np.bincount(np.rint((at[chosen, 1 - axis] + 75.0) / 30.0).astype(int), minlength=6)
        assert stats.chisquare(streets).pvalue > SIGNIFICANCE


def test_manhattan_turns() -> None:
    block_m, speed = 20.0, 10.0
    left, right = Turning.left_probability, Turning.right_probability
    model = Turning(block_m=block_m, speed_min_m_s=speed, speed_max_m_s=speed)
    movement = start(model)
    # a block takes 2 s, so devices a block or more from the border cross exactly one junction
    inner = np.abs(movement.positions_m(50.0)).max(axis=1) < RADIUS_M - block_m
    before, after = (np.rint(velocities_m_s(movement, t)[inner] / speed) for t in (50.0, 52.0))
    crossed = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    assert_share(crossed == 1, left)
    assert_share(crossed == -1, right)
    assert_share((before == after).all(axis=1), 1 - left - right)


@pytest.mark.parametrize("time_s", [0.0, 17.0, 3000.0])
def test_highway_is_uniform_on_its_road(time_s: float) -> None:
    speed, away_s, road_m = 20.0, 4.0, 260.0
    model = Highway(lanes=2, speed_min_m_s=speed, speed_max_m_s=speed, away_s=away_s)
    along = start(model).positions_m(time_s)[:, 0]
    present = np.isfinite(along)
    assert_share(present, road_m / (road_m + speed * away_s))
    assert_uniform(along[present], -road_m / 2, road_m / 2)


# -- attraction ---------------------------------------------------------------------------------------

RHYTHM = ((0.0, (0.9, 0.0, 0.1)), (6.0, (0.2, 0.7, 0.1)), (18.0, (0.4, 0.1, 0.5)))
DAY_S, STAY_S = 24_000.0, 3_000.0
# a walk across the disc of 130 m radius at 60 m/s
LONGEST_WALK_S = 260.0 / 60.0


def bound_for(hour: float) -> np.ndarray:
    """Return the probabilities of the places if the last decision was made an exponential time ago.

    They are the integral over s > 0 of p(hour - s) exp(-s / stay) / stay. As p repeats daily, one day is
    integrated; each earlier day adds the same times exp(-day / stay), a geometric series.
    """
    stay = STAY_S / DAY_S * HOURS
    steps = 24_000
    s = (np.arange(steps) + 0.5) * HOURS / steps
    begins = np.array([begin for begin, _ in RHYTHM])
    p = np.array([p for _, p in RHYTHM])[np.searchsorted(begins, (hour - s) % HOURS, side="right") - 1]
    weights = np.exp(-s / stay)
    return (weights[:, None] * p).sum(axis=0) / weights.sum()


class OnePoint(Attraction):
    work_places, spread_m = 1, 0.0


@pytest.mark.parametrize("begin_hour", [0.0, 17.5])
def test_attraction_recurs_every_day(begin_hour: float) -> None:
    spells = [{"from_hour": h, "to": {"home": p[0], "work": p[1], "centre": p[2]}} for h, p in RHYTHM]
    model = OnePoint(
        rhythm=spells,
        day_s=DAY_S,
        stay_s=STAY_S,
        begin_hour=begin_hour,
        speed_min_m_s=60.0,
        speed_max_m_s=60.0,
    )
    streams = Streams(SEED)
    homes = sample_ring(streams("drop"), DEVICES, inner_radius_m=10.0, outer_radius_m=130.0)
    movement = model.start(homes, cell_radius_m=RADIUS_M, min_distance_m=10.0, streams=streams)
    # a walking device is at no place; its last decision was at most the longest walk ago
    on_the_way = LONGEST_WALK_S / STAY_S
    for hours in (0.0, 4.0, 9.0, 19.0, 24.0 + 9.0, 72.0 + 4.0):
        at = movement.positions_m(hours * DAY_S / HOURS)
        expected = bound_for((begin_hour + hours) % HOURS)
        at_home = np.isclose(at, homes).all(axis=1)
        in_centre = np.isclose(at, 0.0).all(axis=1)
        assert_share(at_home, expected[0], on_the_way)
        assert_share(in_centre, expected[2], on_the_way)
        elsewhere = at[~at_home & ~in_centre]
        (work,) = stats.mode(elsewhere, axis=0).mode[None]
        assert_share(np.isclose(at, work).all(axis=1), expected[1], on_the_way)
