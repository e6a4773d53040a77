"""Test properties of individual mobility models: where devices are, and how they turn."""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.channel.geometry import sample_ring
from edgefl.mobility import Mobility, Movement
from edgefl.mobility.attraction import Attraction
from edgefl.mobility.gauss_markov import GaussMarkov
from edgefl.mobility.highway import Highway
from edgefl.mobility.manhattan import Manhattan
from edgefl.mobility.random_direction import RandomDirection
from edgefl.mobility.random_waypoint import RandomWaypoint
from edgefl.mobility.static import Static
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.tools.constants import made

RADIUS_M = 200.0
SHORT_S = 1e-4  # so short that almost no device turns in it


def start(model: Mobility, devices: int = 20, seed: int = 1) -> Movement:
    positions = np.random.default_rng(0).uniform(-100, 100, (devices, 2))
    return model.start(positions, cell_radius_m=RADIUS_M, min_distance_m=10.0, streams=Streams(seed))


def velocities_m_s(movement: Movement, time_s: float) -> np.ndarray:
    return (movement.positions_m(time_s + SHORT_S) - movement.positions_m(time_s)) / SHORT_S


def test_static_devices_stay() -> None:
    movement = start(Static(doppler_speed_m_s=3.0))
    assert not movement.moves
    assert np.array_equal(movement.positions_m(0.0), movement.positions_m(1e4))
    assert np.array_equal(movement.doppler_speeds_m_s(), np.full(20, 3.0))


def test_static_devices_may_be_as_likely_at_any_distance() -> None:
    """If 4,000 devices are placed by distance, each of ten equally wide rings has 400; bearings do not change."""
    ring = {"inner_radius_m": 20.0, "outer_radius_m": 160.0}
    drawn_m = sample_ring(np.random.default_rng(1), 4000, **ring)
    how: Any = {"cell_radius_m": 160.0, "min_distance_m": 20.0, "streams": Streams(1)}
    assert np.array_equal(Static().start(drawn_m, **how).positions_m(0.0), drawn_m)
    moved_m = Static(placement="distance").start(drawn_m, **how).positions_m(0.0)
    counts, _ = np.histogram(np.hypot(*moved_m.T), bins=10, range=(20.0, 160.0))
    assert counts.sum() == 4000
    assert counts == pytest.approx(np.full(10, 400), abs=4 * math.sqrt(4000 * 0.1 * 0.9))
    assert np.arctan2(*moved_m.T) == pytest.approx(np.arctan2(*drawn_m.T))


class TwoSeconds(GaussMarkov):
    step_s = 2.0


class Straight(Manhattan):
    left_probability = right_probability = 0.0


class TwoWorks(Attraction):
    work_places, spread_m = 2, 15.0


class OnePoint(Attraction):
    work_places, spread_m = 1, 0.0


def test_random_waypoint_walks_at_its_speed() -> None:
    movement = start(RandomWaypoint(area_factor=1.5, speed_min_m_s=2.0, speed_max_m_s=8.0))
    speeds = movement.doppler_speeds_m_s()
    assert np.all((speeds >= 2.0) & (speeds <= 8.0))
    assert len(set(speeds)) == 20
    step_s = 0.1
    path = np.array([movement.positions_m(t) for t in np.arange(0, 300, step_s)])
    walked = np.linalg.norm(np.diff(path, axis=0), axis=2)
    # a step without a turn covers exactly speed x time, and few steps have a turn
    assert np.isclose(walked, speeds * step_s, rtol=1e-6).mean() > 0.95


def test_random_waypoint_begins_in_the_stationary_law_or_where_it_was_dropped() -> None:
    dropped = np.random.default_rng(0).uniform(-100, 100, (20, 2))
    for pause_s in (0.0, 9.0):
        uniform = start(RandomWaypoint(pause_s=pause_s, steady_state=False))
        assert np.array_equal(uniform.positions_m(0.0), dropped)
    assert not np.isclose(start(RandomWaypoint()).positions_m(0.0), dropped).any()


def test_pauses_hold_a_device_at_its_waypoint() -> None:
    movement = start(
        RandomWaypoint(speed_min_m_s=50, speed_max_m_s=50, pause_s=1000.0, steady_state=False), 200
    )
    # the longest leg is the disc's diameter, which takes 2 x 260 m / 50 m/s = 10.4 s
    early, late = movement.positions_m(20.0), movement.positions_m(990.0)
    assert np.array_equal(early, late)
    assert not np.isclose(movement.positions_m(1015.0), late).any()


@pytest.mark.parametrize(
    "model",
    [
        RandomDirection(travel_s=1e9, speed_min_m_s=10, speed_max_m_s=10),
        GaussMarkov(alpha=1.0, speed_mean_m_s=10, speed_std_m_s=0),
    ],
)
def test_reflection_in_a_round_mirror(model: Mobility) -> None:
    """Reflection keeps the speed and the distance of the line of motion from the centre."""
    movement = start(model)
    for time_s in np.arange(0.05, 400.0, 13.0):
        at, velocity = movement.positions_m(time_s), velocities_m_s(movement, time_s)
        distance = np.abs(at[:, 0] * velocity[:, 1] - at[:, 1] * velocity[:, 0]) / 10.0
        if time_s < 1:
            assert np.allclose(np.linalg.norm(velocity, axis=1), 10.0, rtol=1e-6)
            expected, first = distance, velocity
        straight = np.isclose(np.linalg.norm(velocity, axis=1), 10.0, rtol=1e-6)
        # few of these intervals, about one in 1e5, contain a reflection
        assert straight.mean() >= 0.9
        assert np.allclose(distance[straight], expected[straight], rtol=1e-5)
    assert not np.isclose(velocity, first).all(axis=1).any(), "in 390 s each device has been reflected"


def test_gauss_markov_changes_at_its_steps_only() -> None:
    movement = start(TwoSeconds(area_factor=10))  # no device reaches the border, at 2,000 m
    during = [velocities_m_s(movement, t) for t in (4.001, 5.0, 5.999)]
    assert np.allclose(during[0], during[1], atol=1e-6)
    assert np.allclose(during[1], during[2], atol=1e-6)
    assert not np.isclose(velocities_m_s(movement, 6.001), during[2], atol=1e-3).any()
    assert np.array_equal(movement.doppler_speeds_m_s(), np.full(20, 8.0))


def test_manhattan_devices_are_always_on_a_street_of_the_area() -> None:
    block_m = 70.0
    movement = start(Manhattan(block_m=block_m), 300)
    # streets are at odd multiples of half a block within 200 m, that is 35, 105 and 175 m on either side
    streets = np.array([-175.0, -105.0, -35.0, 35.0, 105.0, 175.0])
    seen = set()
    for time_s in np.arange(0.0, 300.0, 1.7):
        at = movement.positions_m(time_s)
        assert np.abs(at).max() <= RADIUS_M
        off_m = np.abs(at[:, :, None] - streets)
        assert np.all(off_m.min(axis=2).min(axis=1) < 1e-9)
        seen |= set(np.flatnonzero((off_m < 1e-9).any(axis=0)))
    assert len(seen) == 12, "every street of both directions is used"


def test_manhattan_devices_turn_round_where_a_street_ends() -> None:
    # no device turns at junctions, so each device goes back and forth on its street of 400 m
    model = Straight(speed_min_m_s=10, speed_max_m_s=10)
    movement = start(model, 100)
    first = movement.positions_m(0.0)
    along = np.abs(velocities_m_s(movement, 0.0)).argmax(axis=1)
    across = 1 - along
    for time_s in (7.0, 33.0, 200.0):
        now = movement.positions_m(time_s)
        assert np.allclose(now[np.arange(100), across], first[np.arange(100), across])
        assert not np.isclose(now[np.arange(100), along], first[np.arange(100), along]).all()
    # the round trip is 800 m at 10 m/s
    assert np.allclose(movement.positions_m(80.0), first, atol=1e-9)


def test_manhattan_needs_a_street() -> None:
    with refused_at("devices.mobility.block_m", 400):
        start(Manhattan(block_m=400.0))
    assert start(Manhattan(block_m=399.0)).moves


def test_highway_lanes_and_loop() -> None:
    model = Highway(lanes=2, speed_min_m_s=20, speed_max_m_s=30, area_factor=1.5, away_s=10)
    movement = start(model, 400)
    lane = np.arange(400) % 4
    # eastbound lanes, outer first, are at 35 and 39 m; westbound lanes, outer first, at 47 and 43 m
    across, velocity = np.array([35, 39, 47, 43])[lane], np.array([20, 30, -20, -30])[lane]
    assert np.array_equal(movement.doppler_speeds_m_s(), np.abs(velocity))
    absent_s = np.zeros(400)
    for time_s in range(40):
        at = movement.positions_m(time_s)
        present = np.isfinite(at).all(axis=1)
        assert np.array_equal(present, np.isfinite(at).any(axis=1)), "both coordinates are nan, or neither"
        assert np.abs(at[present, 0]).max() <= 300.0
        assert np.array_equal(at[present, 1], across[present])
        later = movement.positions_m(time_s + 0.5)
        both = present & np.isfinite(later[:, 0])
        assert np.allclose(later[both, 0] - at[both, 0], 0.5 * velocity[both])
        absent_s += ~present
    # a road of 600 m with an absence of 10 s is a loop of 40 s at 20 m/s, and of 30 s at 30 m/s
    assert np.all((absent_s[np.abs(velocity) == 20] >= 9) & (absent_s[np.abs(velocity) == 20] <= 11))
    loop_s = np.where(np.abs(velocity) == 20, 40.0, 30.0)
    for period in (40.0, 30.0):
        again = loop_s == period
        before, after = movement.positions_m(3.0), movement.positions_m(3.0 + period)
        assert np.allclose(before[again], after[again], equal_nan=True, atol=1e-9)


def test_highway_must_pass_the_cell() -> None:
    with refused_at("", 200):
        start(made(Highway, offset_m=RADIUS_M))


# -- attraction ---------------------------------------------------------------------------------------

SPELLS = [{"from_hour": hour, "to": {place: 1}} for hour, place in ((0, "home"), (8, "work"), (16, "centre"))]
# a day has 2,400 s; devices decide every 20 s on average, and trips of up to 400 m take 7 s
QUICK = {"day_s": 2400.0, "stay_s": 20.0, "speed_min_m_s": 60.0, "speed_max_m_s": 60.0, "area_factor": 1.0}


def test_attraction_follows_the_hours() -> None:
    model = made(TwoWorks, rhythm=SPELLS, centre_m=(120.0, -50.0), **QUICK)
    movement = start(model, 100, seed=2)  # with this seed, the two work places are far apart
    homes = np.random.default_rng(0).uniform(-100, 100, (100, 2))
    # hours 7, 15 and 23 are seven hours after a change of the rhythm, 35 times the mean time between decisions
    home, work, centre = (movement.positions_m(100.0 * hour) for hour in (7, 15, 23))
    assert np.array_equal(home, homes)
    assert np.linalg.norm(centre - (120.0, -50.0), axis=1).max() <= 15.0
    # work places have a radius of 15 m, so devices are within 30 m of the first device or of `other`
    first = np.linalg.norm(work - work[0], axis=1) <= 30.0
    assert 0 < first.sum() < 100
    (other,) = np.flatnonzero(~first)[:1]
    assert np.all(np.linalg.norm(work[~first] - work[other], axis=1) <= 30.0)
    assert len({tuple(spot) for spot in work}) == 100, "each device has its own spot"
    # every day the same devices are at the same places
    for hour, place in ((7, home), (15, work), (23, centre)):
        assert np.allclose(movement.positions_m(100.0 * hour + 3 * 2400.0), place)


def test_attraction_begins_at_its_hour() -> None:
    movement = start(OnePoint(rhythm=SPELLS, begin_hour=15.0, **QUICK), 50)
    at = movement.positions_m(0.0)
    assert np.array_equal(at, np.broadcast_to(at[0], at.shape)), "all devices are at the same work place"
    assert np.array_equal(movement.positions_m(800.0), np.zeros((50, 2))), (
        "eight hours later, all are in the centre"
    )


def test_attraction_centres_lie_in_the_area() -> None:
    reach = math.hypot(200, 90)
    assert reach + 30 < 1.3 * RADIUS_M
    assert start(made(Attraction, centre_m=(200.0, 90.0))).moves
    with refused_at("devices.mobility.area_factor", 260):
        start(made(Attraction, centre_m=(200.0, 120.0)))
