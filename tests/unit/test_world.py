"""The physical world of a scenario: sites, federations, gains."""

from typing import Any

import numpy as np
import pytest

from channel.path_loss.umi import UMi
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.scenario import Scenario
from edgefl.world import World


def world(seed: int = 1, **sections: Any) -> World:
    scenario = {
        "name": "w",
        "seed": seed,
        "devices": {"count": 50},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 1, "flops_per_sample": 1},
        **sections,
    }
    return World(Scenario.model_validate(scenario), Streams(seed))


@pytest.mark.parametrize(
    ("layout", "federations"),
    [
        ({}, 1),
        ({"rings": 1}, 7),
        ({"rings": 2}, 19),
        ({"rings": 1, "federations": "centre"}, 1),
        ({"rings": 2, "edge": "guard_ring"}, 7),
        ({"rings": 1, "edge": "guard_ring"}, 1),
    ],
)
def test_which_cells_have_a_federation(layout: dict[str, Any], federations: int) -> None:
    assert world(layout=layout, radio={"shadowing": "spatial"}).federations == list(range(federations))


def test_devices_are_dropped_in_the_cell_or_over_the_whole_layout() -> None:
    single = np.linalg.norm(world().movement.positions_m(0.0), axis=1)
    assert 10 <= single.min() < single.max() <= 250
    several = world(layout={"rings": 1, "isd_m": 200}, radio={"shadowing": "spatial"})
    assert np.linalg.norm(several.movement.positions_m(0.0), axis=1).max() <= 1.5 * 200


def test_a_place_keeps_its_shadowing_and_a_round_draws_its_own() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 120.0]])
    for shadowing, same in (("spatial", True), ("round", False)):
        gains = world(radio={"shadowing": shadowing}).gains
        first = gains.of_round(positions_m, [0, 1], 0, (1, "train", 1)).gains_db
        second = gains.of_round(positions_m, [0, 1], 0, (1, "train", 2)).gains_db
        assert np.array_equal(first, second) == same
        again = gains.of_round(positions_m, [0, 1], 0, (1, "train", 1)).gains_db
        assert np.array_equal(first, again), "a function of place or round, not of what was asked before"


def test_a_links_shadowing_does_not_depend_on_who_takes_part() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 120.0], [80.0, 80.0]])
    for shadowing in ("spatial", "round"):
        gains = world(radio={"shadowing": shadowing}).gains
        everyone = gains.of_round(positions_m, [0, 1, 2], 0, (1, "train", 1))
        alone = gains.of_round(positions_m, [2], 0, (1, "train", 1))
        assert alone.gains_db[0] == everyone.gains_db[2]
        assert everyone.of([2]).gains_db[0] == alone.gains_db[0]


def test_populations_take_turns() -> None:
    three = world(devices={"count": 8, "populations": 3})
    assert [set(three.members(session) or ()) for session in (1, 2, 3, 4)] == [
        {0, 1, 2},
        {3, 4, 5},
        {6, 7},
        {0, 1, 2},
    ]
    assert world().members(1) is None
    pattern = {"name": "client_pattern", "sessions": [[0, 5]]}
    both = world(devices={"count": 8, "populations": 2, "churn": pattern})
    assert [set(both.members(session) or ()) for session in (1, 2)] == [{0}, {5}]


def test_populations_need_devices() -> None:
    with pytest.raises(ValueError, match="count 2 does not make 3 populations"):
        world(devices={"count": 2, "populations": 3})
    # 0.2 km^2 drop a device or two
    few = world(devices={"density_per_km2": 5, "populations": 50})
    with pytest.raises(EdgeflError, match=r"seed 1 drops \d+ devices, too few for 50 populations") as error:
        few.members(1)
    assert error.value.place == ("devices", "populations")
    with pytest.raises(ValueError, match=r"selector.count 3 exceeds devices.count 4 / 2 populations"):
        world(devices={"count": 4, "populations": 2}, rounds={"selector": {"name": "uniform", "count": 3}})


def test_without_shadowing_the_gain_is_the_path_loss() -> None:
    positions_m = np.array([[60.0, 0.0], [0.0, 4.0]])
    expected = -UMi().path_loss_db(np.array([60.0, 10.0]), carrier_hz=3.5e9)
    for shadowing in ("spatial", "round"):
        gains = world(radio={"shadowing": shadowing, "shadowing_std_db": 0}).gains
        assert gains.of_round(positions_m, [0, 1], 0, (1, "train", 1)).gains_db == pytest.approx(expected)
        assert gains.clamped == 1, "4 m is held at the minimum distance, and counted"


def test_line_of_sight_by_probability_needs_places() -> None:
    with pytest.raises(EdgeflError, match=r"belongs to a place: set radio\.shadowing: spatial"):
        _ = world(radio={"line_of_sight": "probabilistic"}).gains


def test_several_cells_need_places() -> None:
    with pytest.raises(ValueError, match="handover measures path loss and shadowing of a place"):
        world(layout={"rings": 1})
