"""Test the assignment of devices to classes, and the settings that each device takes from its class."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.channel.energy import compute_energy_j, compute_time_s
from edgefl.channel.penetration import STD_DB, wall_loss_db
from edgefl.channel.units import dbm_to_watt
from edgefl.engine.devices.fleet import Fleet
from edgefl.engine.records import DeviceRound
from edgefl.engine.settings import DeviceSettings
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing import Scripted, small_world
from edgefl.testing.cell import within
from tests.tools.journal import with_journal

SIGMAS = 4.5


def fleet(count: int = 100, seed: int = 1, **devices: Any) -> Fleet:
    settings = DeviceSettings.model_validate({"count": count, **devices})
    return Fleet.drawn(settings, count, Streams(seed))


def world(seed: int = 1, **sections: Any) -> World:
    scenario = {
        "name": "w",
        "seed": seed,
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 100_000, "flops_per_sample": 1e6},
        **sections,
    }
    return World(Scenario.model_validate(with_journal(scenario)), Streams(seed))


def sizes(count: int, **shares: Any) -> list[int]:
    classes = {name: {} if share is None else {"share": share} for name, share in shares.items()}
    return np.bincount(fleet(count, classes=classes).of, minlength=len(shares)).tolist()


# -- which device is in which class --------------------------------------------------------------------


def test_sizes() -> None:
    assert sizes(100, phone=0.6, laptop=0.3, sensor=0.1) == [60, 30, 10]
    assert sizes(10, a=0.25, b=0.25, c=0.5) == [3, 2, 5]  # 2.5 rounds to 3; the second class still ends at 5
    assert sizes(10, a=0.7, b=0.1, c=0.1, rest=None) == [7, 1, 1, 1]
    counts = fleet(10, classes={"a": {"count": 3}, "rest": {}})
    assert np.bincount(counts.of).tolist() == [3, 7]
    assert DeviceSettings.model_validate({"classes": {"a": {"count": 3}, "b": {"count": 5}}}).count == 8


def test_who_is_of_which_class_depends_on_the_seed_and_little_else() -> None:
    two = fleet(classes={"phone": {"share": 0.6}, "laptop": {"share": 0.4}})
    three = fleet(classes={"phone": {"share": 0.6}, "laptop": {"share": 0.3}, "sensor": {"share": 0.1}})
    assert np.array_equal(two.of == 0, three.of == 0), "splitting a class does not change other classes"
    assert set(np.flatnonzero(three.of == 1)) < set(np.flatnonzero(two.of == 1))
    assert not np.array_equal(two.of, fleet(seed=2, classes={"phone": {"share": 0.6}, "laptop": {}}).of)
    # with 110 devices the boundary between the classes moves by chance, and about sqrt(n) devices change class
    more = fleet(110, classes={"phone": {"share": 0.6}, "laptop": {"share": 0.4}})
    assert (more.of[:100] != two.of).sum() <= SIGMAS * math.sqrt(110 * 0.6 * 0.4)
    by_ids = fleet(classes={"phone": {"share": 0.6}, "laptop": {}}, classes_by="ids")
    assert by_ids.of.tolist() == [0] * 60 + [1] * 40


# -- settings of classes ------------------------------------------------------------------------------

SLOW = {
    "count": 1,
    "clock_hz": 2e8,
    "flops_per_cycle": 2.0,
    "capacitance": 3e-28,
    "circuit_power_w": 0.25,
    "transmit_power_dbm": 10.0,
    "pa_efficiency": 0.4,
    "uplink_circuit_power_w": 0.05,
}


def test_every_part_is_worked_out_from_its_class() -> None:
    samples, flops = 640, 1.0e6
    small = small_world(
        [50.0, 50.0],
        learner=Scripted(flops_per_sample=flops),
        devices={"classes": {"slow": SLOW, "rest": {}}, "classes_by": "ids"},
    ).run()
    slow, other = small.rows.of[DeviceRound]
    for part, clock_hz, chi, xi, receive_w, send_w in (
        (slow, 2e8, 2.0, 3e-28, 0.25, dbm_to_watt(10.0) / 0.4 + 0.05),
        (other, 1e9, 8.0, 1e-28, 0.1, dbm_to_watt(23.0)),
    ):
        cpu = {"clock_hz": clock_hz, "flops_per_cycle": chi}
        assert part.compute_end_s - part.compute_start_s == pytest.approx(
            compute_time_s(flops, samples, **cpu), rel=1e-9
        )
        assert part.energy_compute_j == compute_energy_j(flops, samples, capacitance=xi, **cpu)
        assert part.energy_rx_j == receive_w * (part.downlink_end_s - part.downlink_start_s)
        assert part.energy_tx_j == pytest.approx(
            send_w * (part.uplink_end_s - part.uplink_start_s), rel=1e-12
        )
    assert small.rows.further["class"] == ["slow", "rest"]
    # over the same path, 13 dB less power makes the uplink longer, and does not change the downlink
    alone = small_world([50.0, 50.0], learner=Scripted(flops_per_sample=flops)).run().rows.of[DeviceRound]
    assert slow.downlink_end_s == alone[0].downlink_end_s
    assert repr(other) == repr(alone[1])
    snr = small.simulation.radio.budget.snr(
        small.simulation.radio.gains.of_round(
            small.simulation.network.positions_m(), [0, 1], 0, (1, "train", 1)
        )
    )
    assert snr["uplink"][0] / snr["uplink"][1] == pytest.approx(10**-1.3)


def test_a_device_on_mains_beside_one_on_a_battery() -> None:
    classes = {"small": {"count": 1, "battery_j": 1e-4}, "mains": {"battery_j": "mains"}}
    devices = {"battery_j": 5.0, "classes": classes, "classes_by": "ids"}
    small = small_world([50.0, 50.0], devices=devices).run()
    outcomes = [part.outcome for part in small.rows.of[DeviceRound]]
    assert outcomes == ["empty_downlink", "completed"]
    charges = small.simulation.network.power.charges()
    assert charges[1] is None
    assert not small.simulation.network.still


def test_heights_change_the_path_loss_of_their_class_only() -> None:
    heights = {"classes": {"high": {"count": 25, "ut_height_m": 8.0}, "rest": {}}, "classes_by": "ids"}
    for shadowing in ("round", "spatial"):
        for radio in ({}, {"propagation": {"line_of_sight": "never"}}):
            radio = within({"propagation": {"shadowing": shadowing}}, radio)
            plain, classed, all_high = (
                world(devices={"count": 50, **devices}, radio=radio, cell=cell)
                for devices, cell in (({}, {}), (heights, {}), ({}, {"ut_height_m": 8.0}))
            )
            positions_m = plain.movement.positions_m(0.0)
            low, mixed, high = (
                one.gains.of_round(positions_m, range(50), 0, (1, "train", 1)).gains_db
                for one in (plain, classed, all_high)
            )
            assert mixed[:25].tolist() == high[:25].tolist()
            assert mixed[25:].tolist() == low[25:].tolist()
            assert not np.array_equal(low, high)


def test_measurements_of_several_cells_know_heights() -> None:
    radio = {"propagation": {"shadowing": "spatial", "line_of_sight": "never"}}
    heights = {"classes": {"high": {"count": 10, "ut_height_m": 8.0}, "rest": {}}, "classes_by": "ids"}
    plain, classed, all_high = (
        world(devices={"count": 20, **devices}, radio=radio, cell=cell, layout={"rings": 1})
        for devices, cell in (({}, {}), (heights, {}), ({}, {"ut_height_m": 8.0}))
    )
    positions_m = plain.movement.positions_m(0.0)
    low, mixed, high = (one.gains.power_db(positions_m) for one in (plain, classed, all_high))
    assert np.array_equal(mixed, np.concatenate([high[:10], low[10:]]))
    one = classed.gains.power_db_of(positions_m[[3, 15]], np.array([3, 15]))
    assert np.array_equal(one, mixed[[3, 15]])
    # both classes share one table of shadowing values
    first, second = classed.gains.large_scales
    assert first.fields._table is second.fields._table


# -- indoors ------------------------------------------------------------------------------------------


def test_walls_stand_between_the_sites_and_those_indoors() -> None:
    """The indoor share and the mean and standard deviation of the loss are as derived, and a place keeps its loss."""
    count, share = 4000, 0.3
    one = world(devices={"count": count, "indoor_share": share, "coated_share": 1.0}, seed=3)
    walls = one.walls(simpy.Environment())
    assert walls is not None
    positions_m = one.movement.positions_m(0.0)
    ids = np.arange(count)
    loss_db = walls.loss_db(positions_m, ids)
    inside = loss_db != 0
    assert abs(inside.mean() - share) < SIGMAS * math.sqrt(share * (1 - share) / count)
    # the minimum of two uniform numbers on (0, 25) has mean 25 / 3 and variance 25^2 / 18
    std_db = math.hypot(STD_DB["high_loss"], 0.5 * 25 / math.sqrt(18))
    expected_db = wall_loss_db(3.5e9, "high_loss") + 0.5 * 25 / 3
    assert abs(loss_db[inside].mean() - expected_db) < SIGMAS * std_db / math.sqrt(inside.sum())
    assert abs(loss_db[inside].std() / std_db - 1) < SIGMAS / math.sqrt(2 * inside.sum())
    # the loss is constant within a square of 25 m; another square is another building
    square_m = 25.0 * np.floor(positions_m / 25.0)
    assert np.array_equal(walls.loss_db(square_m + 24.9, ids), loss_db)
    elsewhere = walls.loss_db(square_m + 25.1, ids) != 0
    both = (elsewhere & inside).mean()
    assert abs(both - share**2) < SIGMAS * math.sqrt(share**2 * (1 - share**2) / count)
    # a query for some devices agrees with one for all devices, and gains fall by exactly the loss
    assert np.array_equal(walls.loss_db(positions_m[7:9], ids[7:9]), loss_db[7:9])
    plain = world(devices={"count": count}, seed=3)
    key = (1, "train", 1)
    radios = [each.radio(None).gains.of_round(positions_m, ids, 0, key).gains_db for each in (one, plain)]  # type: ignore[arg-type]
    assert np.allclose(radios[1] - radios[0], loss_db, rtol=0, atol=1e-9)


# -- movement, churn, members -------------------------------------------------------------------------

WALK = {"name": "random_waypoint", "area_factor": 1.0}


def test_devices_of_a_class_move_by_its_model() -> None:
    """Each device moves as if all devices were in its class, as paths are functions of device and seed."""
    classes = {"walker": {"share": 0.5, "mobility": WALK}, "rest": {}}
    mixed = world(devices={"count": 40, "classes": classes})
    walkers, still = world(devices={"count": 40, "mobility": WALK}), world(devices={"count": 40})
    walks = mixed.fleet.of == 0
    assert mixed.movement.moves
    for time_s in (0.0, 31.0, 7.0):
        expected_m = np.where(
            walks[:, None], walkers.movement.positions_m(time_s), still.movement.positions_m(time_s)
        )
        assert np.array_equal(mixed.movement.positions_m(time_s), expected_m)
    speeds = np.where(walks, walkers.movement.doppler_speeds_m_s(), still.movement.doppler_speeds_m_s())
    assert np.array_equal(mixed.movement.doppler_speeds_m_s(), speeds)


def test_a_trace_moves_the_devices_of_its_class_only(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("t,id,x,y\n0,u,10,0\n10,u,20,0\n0,v,30,0\n")
    classes = {"bus": {"count": 2, "mobility": {"name": "trace", "path": str(file)}}, "rest": {}}
    mixed = world(devices={"count": 5, "classes": classes})
    buses = np.flatnonzero(mixed.fleet.of == 0)
    assert mixed.movement.positions_m(5.0)[buses[0]].tolist() == [15.0, 0.0]
    assert np.isnan(mixed.movement.positions_m(5.0)[buses[1]]).all()  # absent after its only sample
    others = np.flatnonzero(mixed.fleet.of == 1)
    plain = world(devices={"count": 5}).movement.positions_m(0.0)
    assert np.array_equal(mixed.movement.positions_m(5.0)[others], plain[others])


def test_churn_of_each_class_and_the_members_that_it_names() -> None:
    classes = {
        "sleepy": {"share": 0.5, "churn": {"name": "duty_cycle", "on_s": 3, "off_s": 1}},
        "picked": {"churn": {"name": "client_pattern", "sessions": [[0, 1], [2]]}},
    }
    mixed = fleet(10, classes=classes, classes_by="ids")
    alike = fleet(10, churn={"name": "duty_cycle", "on_s": 3, "off_s": 1})
    streams = Streams(1)
    for device, (mine, theirs) in enumerate(
        zip(mixed.switches(streams), alike.switches(streams), strict=True)
    ):
        expected = [next(theirs) for _ in range(4)] if device < 5 else [0.0]
        assert [time_s for time_s, _ in zip(mine, range(4), strict=False)] == expected
    assert mixed.members(1) == frozenset(range(5))  # sessions do not name devices 5 to 9 of class `picked`
    assert fleet(
        4, classes={"picked": {"count": 3, **classes["picked"]}, "rest": {}}, classes_by="ids"
    ).members(2) == {2, 3}
    assert fleet(3).switches(streams) == []
    assert fleet(3).members(1) is None


# -- whole runs ---------------------------------------------------------------------------------------
