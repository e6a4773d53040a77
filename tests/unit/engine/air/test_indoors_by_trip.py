"""Test devices that are in a building or a car depending on their trip, with the shares and losses of 38.901."""

import math
from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.channel.penetration import CAR_STD_DB
from tests.refusals import refused_at
from tests.unit.engine.air.worlds import world_of

COUNT, SIGMAS, MEAN_DB = 4000, 4.0, 9.0
KEYS: dict[str, Any] = {"indoor_share": 0.8, "indoors_by": "trip", "vehicle_above_m_s": 3.0}
WALKERS = {"speed_min_m_s": 1.0, "speed_max_m_s": 1.8}
DRIVERS = {"speed_min_m_s": 8.0, "speed_max_m_s": 14.0}


class Losses:
    """The penetration losses of a world's devices at any time."""

    def __init__(self, mobility: Any, count: int = COUNT, **keys: Any) -> None:
        self.world = world_of(
            seed=5,
            devices={"count": count, "mobility": mobility, **KEYS, **keys},
            radio={"preset": "journal", "propagation": {"shadowing": "spatial"}},
        )
        self._env = simpy.Environment()
        walls = self.world.walls(self._env)
        assert walls is not None
        self._walls = walls

    def at(self, time_s: float) -> np.ndarray:
        if time_s > self._env.now:
            self._env.run(until=time_s)
        return self._walls.loss_db(self.world.movement.positions_m(time_s), np.arange(self.world.count))


def within(share: float, expected: float, count: int) -> bool:
    return abs(share - expected) < SIGMAS * math.sqrt(expected * (1 - expected) / count)


@pytest.mark.parametrize("mobility", ["static", {"name": "random_waypoint", **WALKERS}])
def test_four_of_five_pedestrians_are_indoors_at_any_time(mobility: Any) -> None:
    """At any time 80 % of the devices are indoors, the share in 38.901, Table 7.2-1, for a drop of devices."""
    losses = Losses(mobility)
    for time_s in (0.0, 500.0, 5000.0):
        assert within((losses.at(time_s) != 0).mean(), 0.8, COUNT)


def test_cars_lose_9_db_with_a_deviation_of_5_and_are_in_no_building() -> None:
    """38.901, 7.4.3.2: a loss from N(9, 5^2) is drawn for each car, and no driver is without loss."""
    loss_db = Losses({"name": "random_direction", **DRIVERS}).at(10.0)
    assert abs(loss_db.mean() - MEAN_DB) < SIGMAS * CAR_STD_DB / math.sqrt(COUNT)
    assert abs(loss_db.std() / CAR_STD_DB - 1) < SIGMAS / math.sqrt(2 * COUNT)
    assert (loss_db != 0).all()


def test_a_state_lasts_from_setting_out_to_setting_out() -> None:
    """A walker's indoor state and loss change only when the walker sets out on another trip."""
    losses = Losses({"name": "random_waypoint", "pause_s": 60.0, **WALKERS}, count=500)
    movement = losses.world.movement
    before = losses.at(0.0), movement.trips(0.0).number  # type: ignore[attr-defined]
    changed = 0
    for time_s in range(5, 600, 5):
        loss_db, number = losses.at(float(time_s)), movement.trips(float(time_s)).number  # type: ignore[attr-defined]
        same = number == before[1]
        assert (loss_db[same] == before[0][same]).all()
        assert (number >= before[1]).all()
        changed += int((loss_db[~same] != before[0][~same]).sum())
        before = loss_db, number
    # a trip changes the loss, except for 0.2^2 = 4 % of the trips, which lead from outdoors to outdoors
    trips = int(before[1].sum())
    assert trips > 500
    assert changed > 0.9 * (trips - int(movement.trips(0.0).number.sum()))  # type: ignore[attr-defined]


def test_who_drives_is_in_the_car_on_the_way_and_perhaps_indoors_where_it_rests() -> None:
    losses = Losses({"name": "random_waypoint", "pause_s": 30.0, **DRIVERS}, count=2000)
    loss_db, trips = losses.at(100.0), losses.world.movement.trips(100.0)  # type: ignore[attr-defined]
    going = trips.speed_m_s > 0
    assert going.any()
    assert not going.all()
    assert (loss_db[going] != 0).all()
    assert abs(loss_db[going].mean() - MEAN_DB) < SIGMAS * CAR_STD_DB / math.sqrt(going.sum())
    assert within((loss_db[~going] != 0).mean(), 0.8, int((~going).sum()))


@pytest.mark.parametrize("mobility", ["gauss_markov", "manhattan"])
def test_without_places_to_go_to_a_state_lasts_for_ever(mobility: str) -> None:
    keys = {"speed_mean_m_s": 1.4, "speed_std_m_s": 0.2} if mobility == "gauss_markov" else WALKERS
    losses = Losses({"name": mobility, **keys}, count=300)
    assert np.array_equal(losses.at(0.0), losses.at(3000.0))


def test_classes_have_cars_of_their_own() -> None:
    classes = {"bicycles": {"count": 200, "indoor_share": 0.0, "vehicle_above_m_s": None}, "cars": {}}
    losses = Losses({"name": "random_direction", **DRIVERS}, count=500, classes=classes)
    loss_db = losses.at(5.0)
    on_bicycles = np.array(losses.world.fleet.class_names()) == "bicycles"
    assert not loss_db[on_bicycles].any()
    assert loss_db[~on_bicycles].all()


def test_a_time_before_is_found_again() -> None:
    """Trip numbers are a function of time, like positions, so an earlier time always has the same number."""
    movement = Losses({"name": "random_waypoint", "pause_s": 5.0, **WALKERS}, count=50).world.movement
    forwards = [movement.trips(float(time_s)).number for time_s in range(0, 400, 50)]  # type: ignore[attr-defined]
    for place in (3, 0, 7):
        again = movement.trips(50.0 * place).number  # type: ignore[attr-defined]
        assert np.array_equal(again, forwards[place])


def test_cars_need_trips() -> None:
    with refused_at("", "indoors_by"):
        Losses("static", indoors_by="place")


def test_a_building_is_coated_or_not_for_the_whole_stay() -> None:
    """With half of the buildings coated, a device's loss is constant during a stay, whatever its trip number."""
    walkers = {"name": "random_waypoint", **WALKERS, "pause_s": 600}
    coated, plain = (Losses(walkers, 400, coated_share=share) for share in (0.5, 0.0))
    changes = stays = 0
    before: np.ndarray | None = None
    for time_s in np.arange(0.0, 3000.0, 50.0):
        loss_db, without_db = coated.at(float(time_s)), plain.at(float(time_s))
        assert ((loss_db != 0) == (without_db != 0)).all()
        if before is not None:
            same = (without_db == before[1]) & (without_db != 0)
            assert (loss_db[same] == before[0][same]).all()
            stays, changes = stays + int(same.sum()), changes + int((without_db != before[1]).sum())
        before = loss_db, without_db
    assert changes > 100
    assert stays > 1000
