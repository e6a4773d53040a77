"""Test that paths of every mobility model depend on time, device and seed only."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgefl.channel.geometry import sample_ring
from edgefl.config import registry
from edgefl.mobility import Mobility, Movement
from edgefl.mobility.attraction import Attraction
from edgefl.mobility.gauss_markov import GaussMarkov
from edgefl.mobility.highway import Highway
from edgefl.mobility.itinerary import Itinerary
from edgefl.mobility.manhattan import Manhattan
from edgefl.mobility.od_flows import OdFlows
from edgefl.mobility.random_direction import RandomDirection
from edgefl.mobility.random_waypoint import RandomWaypoint
from edgefl.mobility.static import Static
from edgefl.mobility.trace import Trace
from edgefl.places.areas import Disc, Places, Rectangle
from edgefl.places.streets import Streets
from edgefl.rng import Streams
from tests.refusals import refused_at

RADIUS_M = 100.0
MIN_DISTANCE_M = 10.0
GOLDEN = Path(__file__).parents[2] / "golden" / "sumo_fcd.xml"

AREAS = Places(
    {"east": Disc(centre_m=(100.0, 0.0), radius_m=29.5), "west": Rectangle(from_m=(-50, -20), to_m=(-40, 30))}
)
STREETS = Streets(lines_m=[[(-90, 0), (120, 0)], [(0, -90), (0, 90)]]).read(AREAS)

# quick turns and short rests, so that much happens within the minutes of a test
MODELS: dict[str, list[Mobility]] = {
    "static": [Static()],
    "random_waypoint": [
        RandomWaypoint(pause_s=2.0),
        RandomWaypoint(pause_s=5.0, steady_state=False, area_factor=1.0),
    ],
    "random_direction": [RandomDirection(travel_s=10.0, pause_s=3.0), RandomDirection(travel_s=500.0)],
    "gauss_markov": [GaussMarkov(), GaussMarkov(alpha=0.0), GaussMarkov(alpha=1.0)],
    "manhattan": [Manhattan(block_m=30.0), Manhattan(block_m=190.0)],
    "highway": [Highway(), Highway(lanes=1, away_s=3.0)],
    "attraction": [
        Attraction(day_s=240.0, stay_s=10.0, speed_max_m_s=15.0),
        Attraction(day_s=100.0, stay_s=3.0, begin_hour=12.0, speed_max_m_s=15.0),
        Attraction(
            day_s=100.0,
            stay_s=3.0,
            speed_max_m_s=15.0,
            homes={"west": 0.4, "east": 0.6},
            works="east",
            rhythm=[
                {"from_hour": 0, "to": {"home": 0.5, "work": 0.2, "west": 0.3}},
                {"from_hour": 0, "days": ["tue"], "to": {"east": 1.0}},
            ],
        ).within(AREAS),
    ],
    "od_flows": [
        OdFlows(
            begin={"east": 0.5, "west": 0.5},
            flows=[{"from_hour": 0, "trips_per_hour": {"east": {"west": 1.0}, "west": {"west": 2.0}}}],
            day_s=240.0,
            speed_max_m_s=15.0,
        ).within(AREAS)
    ],
    "itinerary": [
        Itinerary(
            addresses={"home": {"west": 0.5, "east": 0.5}, "work": "east", "gym": (-60.0, -80.0)},
            plan=[
                {"leave": "6:00", "spread_min": 300, "to": "work", "share": 0.8},
                {"leave": "15:00", "spread_min": 60, "to": "gym", "days": ["mon", "tue"]},
                {"leave": "18:00", "spread_min": 90, "to": "home"},
            ],
            day_s=day_s,
            begin_hour=begin_hour,
            speed_max_m_s=15.0,
        ).within(places)
        for places in (AREAS, replace(AREAS, streets=STREETS))
        for day_s, begin_hour in ((240.0, 0.0), (60.0, 16.0))
    ],
    "trace": [Trace(path=GOLDEN), Trace(path=GOLDEN, max_gap_s=0.9)],
}
ALL = [pytest.param(model, id=f"{name}-{i}") for name in MODELS for i, model in enumerate(MODELS[name])]
BORDERED = ["random_waypoint", "random_direction", "gauss_markov", "attraction", "od_flows"]
DEVICES = 4  # number of devices in the trace
LATEST_S = 200.0


def start(model: Mobility, devices: int = DEVICES, seed: int = 1) -> Movement:
    positions = sample_ring(
        np.random.default_rng(0),
        devices,
        inner_radius_m=MIN_DISTANCE_M,
        outer_radius_m=model.area_radius_m(RADIUS_M),
    )
    return model.start(
        positions, cell_radius_m=RADIUS_M, min_distance_m=MIN_DISTANCE_M, streams=Streams(seed)
    )


def test_every_model_is_tested() -> None:
    assert set(MODELS) == set(registry.names("mobility"))


@pytest.mark.parametrize("model", ALL)
@given(times=st.lists(st.floats(0, LATEST_S), min_size=1, max_size=3))
@settings(max_examples=6)
def test_positions_do_not_depend_on_what_was_asked_before(model: Mobility, times: list[float]) -> None:
    asked = start(model)
    for time_s in times:
        assert np.array_equal(asked.positions_m(time_s), start(model).positions_m(time_s), equal_nan=True)


@pytest.mark.parametrize("model", ALL)
@given(few=st.integers(1, DEVICES), time_s=st.floats(0, LATEST_S))
@settings(max_examples=10)
def test_a_device_does_not_disturb_the_others(model: Mobility, few: int, time_s: float) -> None:
    some, all_ = start(model, few), start(model)
    assert np.array_equal(some.positions_m(time_s), all_.positions_m(time_s)[:few], equal_nan=True)
    assert np.array_equal(some.doppler_speeds_m_s(), all_.doppler_speeds_m_s()[:few])


@pytest.mark.parametrize("model", ALL)
def test_shapes(model: Mobility) -> None:
    movement = start(model)
    assert movement.moves == (not isinstance(model, Static))
    assert movement.positions_m(3.0).shape == (DEVICES, 2)
    speeds = movement.doppler_speeds_m_s()
    assert speeds.shape == (DEVICES,)
    assert np.all((speeds >= 0) & (speeds <= 60))


@pytest.mark.parametrize("model", ALL)
def test_the_seed_counts(model: Mobility) -> None:
    same = np.array_equal(
        start(model, seed=1).positions_m(50.0), start(model, seed=2).positions_m(50.0), equal_nan=True
    )
    assert same == isinstance(model, Static | Trace)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("time_s", [-1e-9, math.nan, math.inf])
def test_times_out_of_range(model: Mobility, time_s: float) -> None:
    movement = start(model)
    if movement.moves:
        with refused_at("", "time_s", kind=ValueError):
            movement.positions_m(time_s)


@pytest.mark.parametrize(
    "name", ["random_waypoint", "random_direction", "manhattan", "attraction", "od_flows", "itinerary"]
)
@given(time_s=st.floats(0, LATEST_S), step_s=st.floats(1e-3, 10.0))
@settings(max_examples=20)
def test_nobody_exceeds_its_speed(name: str, time_s: float, step_s: float) -> None:
    for model in MODELS[name]:
        movement = start(model)
        before, after = movement.positions_m(time_s), movement.positions_m(time_s + step_s)
        walked = np.linalg.norm(after - before, axis=1)
        assert np.all(walked <= movement.doppler_speeds_m_s() * step_s * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize("name", BORDERED)
def test_nobody_leaves_the_area(name: str) -> None:
    for model in MODELS[name]:
        movement = start(model, 50)
        path = np.array([movement.positions_m(t) for t in np.arange(0, LATEST_S, 0.7)])
        farthest_m = np.linalg.norm(path, axis=2).max()
        assert farthest_m <= model.area_radius_m(RADIUS_M) * (1 + 1e-12)
        # devices also come close to the border
        assert farthest_m > 0.9 * model.area_radius_m(RADIUS_M)


@pytest.mark.parametrize("cls", [RandomWaypoint, RandomDirection, Manhattan, Highway, Attraction])
def test_speeds_in_order(cls: type[Mobility]) -> None:
    with refused_at("speed_min_m_s", "speed_max_m_s"):
        cls(speed_min_m_s=5, speed_max_m_s=4)
    with refused_at("speed_max_m_s", "finite"):
        cls(speed_min_m_s=1, speed_max_m_s=math.inf)
