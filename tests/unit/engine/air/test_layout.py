"""Sites at any places, sectors, and which cells have a federation."""

import csv
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgefl
from edgefl.commands.explained import describe
from edgefl.engine.air.gains import SpatialGains
from edgefl.engine.air.layout import LayoutSettings
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.scenario import scenario as scenarios
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.studies.validation import check_build
from tests.tools.invariants import check_run
from tests.tools.journal import with_journal

SPATIAL = {"shadowing": "spatial", "line_of_sight": "probabilistic"}
TOWN = [[0, 0], [400, 50], [-120, 310]]
HEAD = """name: w
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 100000, flops_per_sample: 1000}
radio: {preset: journal, shadowing: spatial}
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
    assert made.federations == [0, 1, 2]
    assert made.extent.radius_m == pytest.approx(np.hypot(400, 50) + 150)
    assert world({"sites": TOWN, "radius_m": 700}).extent.radius_m == 700
    nearest_m = 20.0 * np.eye(2)[0] + made.sites_m
    power = power_db(world({"sites": TOWN}, radio={**SPATIAL, "shadowing_std_db": 0}), nearest_m)
    assert power.argmax(axis=1).tolist() == [0, 1, 2]


def test_who_may_come_to_the_edge_of_a_cell() -> None:
    """Among several cells, in a wider area than the cell, or where areas are: they may lie anywhere."""
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


@pytest.mark.slow
def test_a_preview_counts_the_cells_of_sectors() -> None:
    seen = check_build(world({"sites": TOWN, "sectors": 3, "federations": [0, 4]}).scenario)
    assert (seen.cells, seen.federations) == (9, 2)


def test_sites_on_the_hexagons_are_the_hexagons() -> None:
    """To the last bit, where the world of both is the same disc."""
    hexagons = world({"rings": 1, "isd_m": 200, "edge": "guard_ring"})
    placed = world({"sites": hexagons.sites_m.tolist(), "radius_m": 300})
    assert np.array_equal(power_db(placed, places(300)), power_db(hexagons, places(300)))


@pytest.mark.slow
def test_hundreds_of_sites() -> None:
    grid = [[20.0 * i, 20.0 * j] for i in range(-9, 10) for j in range(-9, 10)]
    made = world({"sites": grid, "radius_m": 250}, radio={**SPATIAL, "shadowing_std_db": 0})
    assert power_db(made, places(250, 20)).shape == (20, 361)


@pytest.mark.slow
@pytest.mark.parametrize("layout", [{"sites": TOWN}, {"rings": 1}, {}])
def test_sectors_share_the_shadowing_and_sight_of_their_site(layout: dict[str, Any]) -> None:
    """Between the cells of a site only the panels differ; a site without panels has the rest."""
    with_sectors = world({**layout, "sectors": 3, "downtilt_deg": 6}, devices={"count": 200})
    without = world(layout)
    at_m = places(100)
    one = power_db(without, at_m)
    three = power_db(with_sectors, at_m).reshape(len(at_m), -1, 3)
    assert with_sectors.sectors is not None
    panels_dbi = with_sectors.sectors.gain_dbi(at_m).reshape(three.shape)
    # single precision: gains of some 100 dB round by 4e-6 dB each, those of panels by less than 1e-4
    assert np.abs(three - one[:, :, None] - panels_dbi).max() < 1.3e-4
    state = with_sectors.gains.of_round(at_m, list(range(len(at_m))), 2, (1, "train", 1))
    assert state.gains_db == pytest.approx(three[:, 0, 2], abs=1e-3)
    assert state.distances_m == pytest.approx(np.hypot(*at_m.T)), "of cell 2: to site 0"


@pytest.mark.slow
def test_panels_see_each_class_at_its_own_height() -> None:
    """A device on a roof has the gains of a world in which all devices are on roofs."""
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
    radio = {**SPATIAL, "shadowing_std_db": 0, "neighbour_load": 0.5, "line_of_sight": "always"}
    made = world({"sectors": 3}, radio=radio)
    at_m = places(200, 30)
    linear = 10 ** (power_db(made, at_m).astype(float) / 10)
    state = made.gains.of_round(at_m, list(range(30)), 1, (1, "train", 1))
    assert state.others == pytest.approx(linear[:, 0] + linear[:, 2], rel=1e-5)


def test_the_point_of_a_cell_lies_in_it() -> None:
    made = world({"sites": TOWN, "sectors": 3}, radio={**SPATIAL, "shadowing_std_db": 0})
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
        ({"rings": 1, "sectors": 3, "edge": "guard_ring"}, [0, 1, 2]),
        ({"rings": 2, "edge": "guard_ring", "federations": [0, 6]}, [0, 6]),
        ({"sectors": 3}, [0, 1, 2]),
    ],
)
def test_which_cells_have_a_federation(layout: dict[str, Any], federations: list[int]) -> None:
    assert LayoutSettings.model_validate(layout).with_federation == federations


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        ("{sites: [[0, 0]], rings: 1}", "layout: give either rings (hexagons) or sites (any places)"),
        ("{sites: [[0, 0]], edge: wraparound}", "layout: edge wraparound belongs to rings"),
        ("{sites: [[0, 0], [5, 5], [0, 0]]}", "layout: two of the sites are at the same place"),
        ("{sites: []}", "layout: sites: name 1 to 500 places, got 0"),
        ("{sites: [[0]]}", "layout.sites.0.1: is missing"),
        ("{sites: [[0, 1.0e+9]]}", "layout.sites.0.1: must be <= 50000"),
        ("{radius_m: 300}", "layout: radius_m is the world's around sites"),
        ("{sectors: 2}", "layout.sectors: must be 1 or 3, got 2"),
        (
            "{rings: 1, federations: [7]}",
            "layout: federations: no cell 7 that could have one; cells are 0 to 6",
        ),
        ("{rings: 1, edge: guard_ring, federations: [1]}", "no cell 1 that could have one; cells are 0 to 0"),
        ("{rings: 1, federations: [1, 1]}", "layout: federations: name at least one cell, each once"),
        ("{rings: 1, federations: []}", "layout: federations: name at least one cell"),
        ("{rings: 1, federations: some}", "layout.federations: must be"),
        ("{sites: [[4000, 0]], radius_m: 2000}", "layout.radius_m: the farthest links are 6000 m long"),
        ("{sites: [[4000, 0]]}", "layout.sites: the farthest links are 8250 m long, and UMi"),
    ],
)
def test_layouts_that_cannot_be_are_refused(layout: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(f"{HEAD}layout: {layout}\n")
    with pytest.raises(EdgeflError, match=rf"a\.yaml:6 .*{re.escape(message)}") as error:
        scenarios.load(file)
    assert len(str(error.value).splitlines()) == 1


@pytest.mark.parametrize("layout", [{"sites": TOWN}, {"sectors": 3}])
def test_cells_by_place_need_places(layout: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="handover measures path loss and shadowing of a place"):
        world(layout, radio={})


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout",
    [
        {"sites": [[0, 0], [60, 0], [0, 80]], "radius_m": 120, "federations": [1, 2]},
        pytest.param({"sites": [[0, 0], [60, 0]], "sectors": 3, "radius_m": 120}, marks=pytest.mark.slow),
        {"rings": 1, "isd_m": 60, "sectors": 3, "federations": "centre"},
        pytest.param({"sectors": 3}, marks=pytest.mark.slow),
    ],
)
def test_a_run_and_the_same_from_its_directory(layout: dict[str, Any], tmp_path: Path) -> None:
    made = Scenario.model_validate(
        {
            "name": "w",
            "cell": {"radius_m": 100},
            "layout": layout,
            "handover": {"time_to_trigger_s": 0.05, "measurement_interval_s": 0.1, "hysteresis_db": 1},
            "devices": {
                "count": 24,
                "mobility": {"name": "random_waypoint", "speed_min_m_s": 15, "speed_max_m_s": 30},
            },
            "radio": {"preset": "journal", **SPATIAL, "bandwidth_hz": 3e5, "neighbour_load": 0.2},
            "sessions": {"name": "schedule", "count": 2, "rounds": 3},
            "rounds": {"max_wait_s": 5.0},
            "workload": {"payload_bits": 300_000, "flops_per_sample": 1e4},
        }
    )
    run = edgefl.simulate(made, out=tmp_path / "a")
    assert check_run(run) == []
    with (run / "rounds.csv").open() as file:
        cells = {int(row["cell"]) for row in csv.DictReader(file)}
    assert 0 < len(cells) == len(cells & set(LayoutSettings.model_validate(layout).with_federation))
    again = edgefl.simulate(scenarios.load(run / "scenario.yaml"), out=tmp_path / "b")
    for table in ("rounds", "devices", "events"):
        assert (again / f"{table}.csv").read_bytes() == (run / f"{table}.csv").read_bytes()


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
        "  cell 1: site 0 at [0, 0] m, bearing 150 degrees, no federation",
        "  cell 2: site 0 at [0, 0] m, bearing 270 degrees, no federation",
        "  cell 3: site 1 at [-20, 7.5] m, bearing 30 degrees, no federation",
        "  cell 4: site 1 at [-20, 7.5] m, bearing 150 degrees",
        "  cell 5: site 1 at [-20, 7.5] m, bearing 270 degrees, no federation",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("radoi",),
            "'radoi': write KIND/NAME, e.g. algorithms/fedprox, or a key: did you mean 'radio'?",
        ),
        (("radio", Path("a.yaml")), "'a.yaml': only the layout of a scenario is listed"),
        (("models/logistic", Path("a.yaml")), "'a.yaml': only the layout of a scenario is listed"),
    ],
)
def test_what_cannot_be_described(words: tuple[Any, ...], message: str) -> None:
    with pytest.raises(EdgeflError, match=re.escape(message)):
        describe(*words)


@pytest.mark.parametrize("section", ["layout", "radio", "learning", "workload", "cell", "devices"])
def test_every_section_is_described(section: str) -> None:
    assert describe(section).startswith(f"{section}\n\n")
