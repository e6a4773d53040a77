"""Movement is a function of time, device and seed."""

import numpy as np
import pytest
from pydantic import ValidationError

from edgefl.mobility import Mobility, Movement
from edgefl.mobility.random_waypoint import RandomWaypoint
from edgefl.mobility.static import Static
from edgefl.rng import Streams

RADIUS_M = 200.0


def start(model: Mobility, devices: int = 20, seed: int = 1) -> Movement:
    positions = np.random.default_rng(0).uniform(-100, 100, (devices, 2))
    return model.start(positions, cell_radius_m=RADIUS_M, min_distance_m=10.0, streams=Streams(seed))


def test_static_devices_stay() -> None:
    movement = start(Static(doppler_speed_m_s=3.0))
    assert not movement.moves
    assert np.array_equal(movement.positions_m(0.0), movement.positions_m(1e4))
    assert np.array_equal(movement.doppler_speeds_m_s(), np.full(20, 3.0))


def test_random_waypoint_walks_at_its_speed_within_its_disc() -> None:
    model = RandomWaypoint(area_factor=1.5, speed_min_m_s=2.0, speed_max_m_s=8.0)
    movement = start(model)
    speeds = movement.doppler_speeds_m_s()
    assert np.all((speeds >= 2.0) & (speeds <= 8.0))
    assert len(set(speeds)) == 20
    step_s = 0.1
    path = np.array([movement.positions_m(t) for t in np.arange(0, 300, step_s)])
    assert np.linalg.norm(path, axis=2).max() <= 1.5 * RADIUS_M
    walked = np.linalg.norm(np.diff(path, axis=0), axis=2)
    assert np.all(walked <= speeds * step_s * (1 + 1e-9)), "a turn only shortens the straight line"
    # a step without a turn covers exactly speed x time, and turns are rare
    straight = np.isclose(walked, speeds * step_s, rtol=1e-6)
    assert straight.mean() > 0.95


def test_positions_do_not_depend_on_what_was_asked_before() -> None:
    model = RandomWaypoint(pause_s=2.0)
    times = np.random.default_rng(2).uniform(0, 400, 50)
    forwards, random_order = start(model), start(model)
    expected = {t: forwards.positions_m(t).copy() for t in sorted(times)}
    for t in times:
        assert np.allclose(random_order.positions_m(t), expected[t], atol=1e-9)


def test_a_device_does_not_disturb_the_others() -> None:
    few, many = start(RandomWaypoint(), 5), start(RandomWaypoint(), 20)
    few_start, many_start = few.positions_m(0.0), many.positions_m(0.0)
    assert np.array_equal(few_start, many_start[:5])
    assert np.allclose(few.positions_m(500.0), many.positions_m(500.0)[:5])


def test_pauses_hold_a_device_at_its_waypoint() -> None:
    movement = start(RandomWaypoint(speed_min_m_s=50, speed_max_m_s=50, pause_s=1000.0), 200)
    early, late = movement.positions_m(20.0).copy(), movement.positions_m(900.0)
    # the longest leg, the diameter of the disc, takes 2 x 260 m / 50 m/s = 10.4 s
    assert np.array_equal(early, late)


def test_speeds_in_order() -> None:
    with pytest.raises(ValidationError, match="must not exceed"):
        RandomWaypoint(speed_min_m_s=5, speed_max_m_s=4)
