"""Test that a single survey of all devices serves all requests at the same time."""

import numpy as np
import pytest
import simpy

from edgefl.engine.air.indoors import BehindWalls
from edgefl.engine.air.measurements import Measurements, Survey
from edgefl.engine.cells.device_positions import DevicePositions
from tests.unit.engine.air.worlds import world_of
from tests.unit.engine.moving import Moving

DEVICES, CELLS = 6, 3


class Books:
    """Power as a function of position, with a list of how many positions each call measures."""

    def __init__(self) -> None:
        self.measured: list[int] = []

    def power_db_of(self, positions_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        assert len(ids) == len(positions_m)
        self.measured.append(len(positions_m))
        return -positions_m[:, :1] - np.arange(CELLS, dtype=np.float32)


def places(*x_m: float) -> np.ndarray:
    return np.stack([np.array(x_m), np.zeros(len(x_m))], axis=1)


def test_who_has_not_moved_is_not_measured_again_and_an_old_survey_stays_what_it_was() -> None:
    books = Books()
    subject = Measurements(CELLS, books.power_db_of)
    here_m = places(*range(10, 10 + DEVICES))
    first = subject.survey(here_m)
    assert first is subject.survey(here_m)
    assert books.measured == [DEVICES]
    there_m = here_m.copy()
    there_m[4] = 50.0
    before_db = first.power_db.copy()
    second = subject.survey(there_m)
    assert books.measured == [DEVICES, 1]
    assert np.array_equal(second.power_db, books.power_db_of(there_m, np.arange(DEVICES)))
    assert np.array_equal(first.power_db, before_db)
    assert subject.survey(there_m.copy()).power_db is second.power_db, "at the same places"


@pytest.mark.parametrize("waits_s", [(0.1, 0.2), (0.3,)])
def test_a_time_that_was_reached_in_two_ways_is_one(waits_s: tuple[float, ...]) -> None:
    """Although 0.1 + 0.2 exceeds 0.3 by a rounding error, both times are equal, and positions are computed once."""
    env, asked_s = simpy.Environment(), []

    def place_m(time_s: float) -> list[list[float]]:
        asked_s.append(time_s)
        return [[time_s, time_s]]

    device_positions = DevicePositions(env, Moving(place_m), None)
    for wait_s in waits_s:
        env.run(until=env.now + wait_s)
    first_m = device_positions.positions_m()
    env.run(until=max(0.1 + 0.2, np.nextafter(env.now, 1.0)))
    assert device_positions.positions_m() is first_m
    assert len(asked_s) == 1
    env.run(until=0.3 + 1e-9)
    assert device_positions.positions_m() is not first_m


@pytest.mark.parametrize("load", [0.0, 0.3])
@pytest.mark.parametrize("sectors", [1, 3])
def test_a_survey_says_what_links_are_within_a_thousandth_of_a_db(load: float, sectors: int) -> None:
    layout = {"rings": 1, "isd_m": 300, "sectors": sectors}
    world = world_of(seed=5, layout=layout, devices={"count": 40}, radio={"neighbour_load": load})
    env = simpy.Environment()
    gains = world.radio(env).gains
    assert isinstance(gains, BehindWalls)
    positions_m = world.movement.positions_m(0.0)
    power_db = world.gains.power_db(positions_m)
    ids, cells = list(range(1, 40, 2)), power_db.argmax(axis=1)[1::2]
    one = gains.of_round(positions_m, ids, cells, (1, "train", 1))
    other = gains.of_survey(Survey(positions_m, power_db), ids, cells)
    np.testing.assert_allclose(other.gains_db, one.gains_db, rtol=0, atol=1e-3)
    np.testing.assert_allclose(other.others, one.others, rtol=10**1e-4 - 1)
    if load:
        assert one.of_cells is not None
        assert other.of_cells is not None
        np.testing.assert_allclose(other.of_cells, one.of_cells, rtol=10**1e-4 - 1)
