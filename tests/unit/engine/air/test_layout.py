"""Test sites at arbitrary places, sectors, and which cells have a federation."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl.commands.descriptions import describe
from edgefl.engine.air.gains import SpatialGains
from edgefl.engine.air.layout import LayoutSettings
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing.cell import within
from tests.tools.journal import with_journal

SPATIAL = {"propagation": {"shadowing": "spatial", "line_of_sight": "probabilistic"}}
TOWN = [[0, 0], [400, 50], [-120, 310]]
HEAD = """name: w
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 100000, flops_per_sample: 1000}
radio: {preset: journal, propagation: {shadowing: spatial}}
"""


def world(layout: dict[str, Any], **sections: Any) -> World:
    scenario = {
        "name": "w",
        "devices": {"count": 50},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 1, "flops_per_sample": 1},
        "radio": SPATIAL,
        **sections,
        "layout": layout,
    }
    return World(Scenario.model_validate(with_journal(scenario)), Streams(1))


def power_db(world: World, places_m: np.ndarray) -> np.ndarray:
    gains = world.gains
    assert isinstance(gains, SpatialGains)
    return gains.power_db(places_m)


def places(radius_m: float, count: int = 200) -> np.ndarray:
    draws = np.random.default_rng(3).random((2, count))
    radius, angle = radius_m * np.sqrt(draws[0]), 2 * np.pi * draws[1]
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)


def test_sites_stand_where_they_are_put_and_the_world_reaches_a_cell_beyond_them() -> None:
    made = world({"sites": TOWN}, cell={"radius_m": 150})
    assert np.array_equal(made.sites_m, TOWN)
    assert made.served == [0, 1, 2]
    assert made.extent.radius_m == pytest.approx(np.hypot(400, 50) + 150)
    assert world({"sites": TOWN, "radius_m": 700}).extent.radius_m == 700
    nearest_m = 20.0 * np.eye(2)[0] + made.sites_m
    power = power_db(
        world({"sites": TOWN}, radio=within(SPATIAL, {"propagation": {"shadowing_std_db": 0}})), nearest_m
    )
    assert power.argmax(axis=1).tolist() == [0, 1, 2]


def test_who_may_come_to_the_edge_of_a_cell() -> None:
    """Devices may reach the edge if a world has several cells, an area wider than the cell, or homes in an area."""
    walk: dict[str, Any] = {"name": "random_waypoint", "area_factor": 1.0}
    homes = {"name": "attraction", "area_factor": 1.0, "homes": "village"}
    village = {"village": {"disc": {"centre_m": [400, 0], "radius_m": 30}}}
    for layout, mobility, may in [
        ({"sites": TOWN}, walk, True),
        ({"sectors": 3}, walk, True),
        ({}, walk, False),
        ({}, {**walk, "area_factor": 1.1}, True),
        ({}, homes, True),
        ({"sectors": 3}, {"name": "static"}, False),
    ]:
        devices = {"count": 5, "mobility": mobility}
        assert world(layout, devices=devices, areas=village).may_cross == may


def test_sites_on_the_hexagons_are_the_hexagons() -> None:
    """Sites given at the hexagons' centres have the same powers near the middle, far from wrap-around copies."""
    hexagons = world({"rings": 1, "isd_m": 200})
    placed = world({"sites": hexagons.sites_m.tolist(), "radius_m": 300})
    power = power_db(hexagons, places(75))
    # single precision: gains of some 100 dB round by 4e-6 dB each, and logarithms of distances by about as much
    np.testing.assert_allclose(power_db(placed, places(75)), power, rtol=0, atol=3e-5)


def test_hundreds_of_sites() -> None:
    grid = [[20.0 * i, 20.0 * j] for i in range(-9, 10) for j in range(-9, 10)]
    made = world(
        {"sites": grid, "radius_m": 250}, radio=within(SPATIAL, {"propagation": {"shadowing_std_db": 0}})
    )
    assert power_db(made, places(250, 20)).shape == (20, 361)


@pytest.mark.parametrize("layout", [{"sites": TOWN}, {"rings": 1}, {}])
def test_sectors_share_the_shadowing_and_sight_of_their_site(layout: dict[str, Any]) -> None:
    """The cells of a site differ only in their panels' gain; everything else is as for a site without panels."""
    with_sectors = world({**layout, "sectors": 3, "downtilt_deg": 6}, devices={"count": 200})
    without = world(layout)
    at_m = places(100)
    one = power_db(without, at_m)
    three = power_db(with_sectors, at_m).reshape(len(at_m), -1, 3)
    assert with_sectors.sectors is not None
    panels_dbi = with_sectors.sectors.gain_dbi(at_m).reshape(three.shape)
    # single precision: gains of some 100 dB round by 4e-6 dB each, panel gains by less than 1e-4 dB
    assert np.abs(three - one[:, :, None] - panels_dbi).max() < 1.3e-4
    state = with_sectors.gains.of_round(at_m, list(range(len(at_m))), 2, (1, "train", 1))
    assert state.gains_db == pytest.approx(three[:, 0, 2], abs=1e-3)
    assert state.distances_m == pytest.approx(np.hypot(*at_m.T)), "distances of cell 2 are to site 0"


def test_panels_see_each_class_at_its_own_height() -> None:
    """A device on a roof has the same gains as in a world where all devices are on roofs."""
    layout = {"rings": 1, "sectors": 3, "downtilt_deg": 6}
    classes = {"street": {"count": 10, "ut_height_m": 1.5}, "roof": {"count": 10, "ut_height_m": 8.0}}
    radio = {**SPATIAL, "neighbour_load": 0.5}
    mixed = world(layout, radio=radio, devices={"count": 20, "classes_by": "ids", "classes": classes})
    at_m, everyone = places(100, 20), list(range(20))
    for height_m, mine in ((1.5, slice(0, 10)), (8.0, slice(10, 20))):
        alike = world(layout, radio=radio, devices={"count": 20}, cell={"ut_height_m": height_m})
        assert np.array_equal(power_db(mixed, at_m)[mine], power_db(alike, at_m)[mine])
        one, other = (each.gains.of_round(at_m, everyone, 4, (1, "train", 1)) for each in (mixed, alike))
        assert np.array_equal(one.gains_db[mine], other.gains_db[mine])
        assert np.array_equal(one.others[mine], other.others[mine])
    assert mixed.scenario.layout.cells == power_db(mixed, at_m).shape[1] == 21


def test_other_sectors_of_the_site_interfere() -> None:
    radio = within(
        SPATIAL, {"propagation": {"shadowing_std_db": 0, "line_of_sight": "always"}, "neighbour_load": 0.5}
    )
    made = world({"sectors": 3}, radio=radio)
    at_m = places(200, 30)
    linear = 10 ** (power_db(made, at_m).astype(float) / 10)
    state = made.gains.of_round(at_m, list(range(30)), 1, (1, "train", 1))
    assert state.others == pytest.approx(linear[:, 0] + linear[:, 2], rel=1e-5)


def test_the_point_of_a_cell_lies_in_it() -> None:
    made = world(
        {"sites": TOWN, "sectors": 3}, radio=within(SPATIAL, {"propagation": {"shadowing_std_db": 0}})
    )
    assert made.cells_m.shape == (9, 2)
    away_m = np.repeat(made.sites_m, 3, axis=0) + 40 * (made.cells_m - np.repeat(made.sites_m, 3, axis=0))
    assert power_db(made, away_m).argmax(axis=1).tolist() == list(range(9))
    assert np.array_equal(world({"rings": 1}).cells_m, world({"rings": 1}).sites_m)


@pytest.mark.parametrize(
    ("layout", "federations"),
    [
        ({"sites": TOWN}, [0, 1, 2]),
        ({"sites": TOWN, "federations": "centre"}, [0]),
        ({"sites": TOWN, "federations": [1, 2]}, [1, 2]),
        ({"sites": TOWN, "sectors": 3, "federations": "centre"}, [0, 1, 2]),
        ({"sites": TOWN, "sectors": 3, "federations": [0, 8]}, [0, 8]),
        ({"rings": 1, "sectors": 3}, list(range(21))),
        ({"rings": 2, "federations": [0, 6]}, [0, 6]),
        ({"sectors": 3}, [0, 1, 2]),
    ],
)
def test_which_cells_have_a_federation(layout: dict[str, Any], federations: list[int]) -> None:
    assert LayoutSettings.model_validate(layout).served == federations


def test_describe_says_where_cells_lie(tmp_path: Path) -> None:
    text = describe("layout")
    assert "  cell 2: site 2 at [100, 173.21] m\n" in text
    assert "rings: rings of cells around" in text
    file = tmp_path / "a.yaml"
    file.write_text(f"{HEAD}layout: {{sites: [[0, 0], [-20, 7.5]], sectors: 3, federations: [0, 4]}}\n")
    lines = describe("layout", file).splitlines()[-7:]
    assert lines == [
        "Cells of w, in a world of 271.36 m around [0, 0]:",
        "  cell 0: site 0 at [0, 0] m, bearing 30 degrees",
        "  cell 1: site 0 at [0, 0] m, bearing 150 degrees, without a federation",
        "  cell 2: site 0 at [0, 0] m, bearing 270 degrees, without a federation",
        "  cell 3: site 1 at [-20, 7.5] m, bearing 30 degrees, without a federation",
        "  cell 4: site 1 at [-20, 7.5] m, bearing 150 degrees",
        "  cell 5: site 1 at [-20, 7.5] m, bearing 270 degrees, without a federation",
    ]
