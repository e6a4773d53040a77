"""Test that the report draws the layout, areas and streets as the engine places them."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from edgefl.analysis import load_runs
from edgefl.analysis.html.setting import _cells_of
from edgefl.analysis.html.words import summary
from edgefl.analysis.runs.places import (
    _hexagonal_sites_m,
    _images_m,
    _streets_of,
    layout_of,
    map_of,
)
from edgefl.channel.layout import Wraparound, hexagonal_sites
from edgefl.mobility.highway import Highway
from edgefl.mobility.manhattan import Manhattan
from edgefl.rng import Streams
from edgefl.run.api import simulate
from edgefl.scenario.scenario import dump, load

CELL = {"radius_m": 250.0}
RUN: dict[str, Any] = {
    "name": "w",
    "devices": {"count": 2},
    "sessions": {"name": "schedule", "count": 1, "rounds": 1},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1000},
}
PLAIN = {"sectors": 1, "azimuth_deg": 30.0, "rings": 0, "isd_m": 200.0}


@pytest.mark.parametrize("rings", [1, 2])
def test_sites_and_their_copies_are_those_of_the_channel(rings: int) -> None:
    sites_m = hexagonal_sites(rings, 200.0)
    np.testing.assert_allclose(_hexagonal_sites_m(rings, 200.0), sites_m, atol=1e-9)
    world = Wraparound(rings, 200.0)
    points_m = np.random.default_rng(1).uniform(-400, 400, (200, 2))
    nearest_m = np.linalg.norm(world.displacement_m(points_m, sites_m), axis=-1)
    copies_m = sites_m[None] + _images_m(rings, 200.0)[:, None]
    mine_m = np.linalg.norm(points_m[:, None, None] - copies_m, axis=-1).min(axis=1)
    inside = np.linalg.norm(points_m, axis=1) < (rings + 0.5) * 200.0
    assert inside.sum() > 50
    np.testing.assert_allclose(mine_m[inside], nearest_m[inside])


def test_one_cell_hexagons_and_open_sites() -> None:
    assert layout_of({"cell": CELL, "layout": PLAIN}) == {
        "panels": [[]],
        "cells": 1,
        "images": [[0.0, 0.0]],
        "shape": "disc",
        "sites": [[0.0, 0.0]],
        "isd_m": 0.0,
        "radius_m": 250.0,
    }
    hexagons = layout_of({"cell": CELL, "layout": PLAIN | {"rings": 1}})
    assert (hexagons["shape"], len(hexagons["sites"]), len(hexagons["images"])) == ("hexagons", 7, 7)
    free = layout_of({"cell": CELL, "layout": PLAIN | {"sites": [[0, 0], [300, 400]]}})
    assert (free["shape"], free["radius_m"]) == ("open", 750.0)


def test_areas_and_streets_are_those_of_the_run(tmp_path: Path) -> None:
    """Areas and streets come from map.json in the run directory, as the map's files may no longer exist."""
    east_deg = 100 / 111_319.49  # at the equator
    ring = [[17.0, 0.0], [17.0 + east_deg, 0.0], [17.0, east_deg], [17.0, 0.0]]
    (tmp_path / "town.geojson").write_text(json.dumps({"type": "Polygon", "coordinates": [ring]}))
    scenario = load(
        {
            **RUN,
            "origin_lon_lat": [17.0, 0.0],
            "areas": {
                "park": {"disc": {"centre_m": [1, 2], "radius_m": 3}},
                "station": {"rectangle": {"from_m": [0, 0], "to_m": [2, 1]}},
                "square": {"polygon": {"points_m": [[0, 0], [4, 0], [0, 4]]}},
                "town": {"geojson": {"path": str(tmp_path / "town.geojson")}},
            },
            "streets": {"lines_m": [[[0, 0], [30, 40]]]},
        }
    )
    run = Path(simulate(scenario, out=tmp_path / "run"))
    (tmp_path / "town.geojson").unlink()
    notes: list[str] = []
    layout, (park, station, square, town), streets = map_of(run, notes)
    assert layout["shape"] == "disc"
    assert park == {"name": "park", "centre": [1, 2], "radius": 3}
    assert station["points"] == [[[0, 0], [2, 0], [2, 1], [0, 1]]]
    assert square["points"] == [[[0, 0], [4, 0], [0, 4]]]
    (corners,) = town["points"]
    # a degree of latitude is 110.574 km at the equator
    assert sorted(map(tuple, corners[:3])) == [(0.0, 0.0), (0.0, 99.3), (100.0, 0.0)]
    assert streets == [[[0.0, 0.0], [30.0, 40.0]]]
    assert not notes
    for content in ("", "[", "[]", '{"areas": 3}', '{"areas": [{}]}', '{"streets": ["x"]}'):
        (run / "map.json").write_text(content)
        ground = map_of(run, notes)
        assert (ground.areas, ground.streets) == ([], [])
        assert "Areas and streets are not drawn" in notes.pop()
        assert not notes


@pytest.mark.parametrize("model", [Manhattan(block_m=70.0), Highway(lanes=2)], ids=["manhattan", "highway"])
def test_whoever_drives_is_on_a_street_of_the_drawing(model: Manhattan | Highway) -> None:
    written = {"devices": {"mobility": {"name": type(model).__name__.lower(), **model.model_dump()}}}
    streets_m = np.array(_streets_of(written, 200.0))  # [streets, 2 ends, 2], parallel to an axis
    places_m = np.random.default_rng(0).uniform(-100, 100, (200, 2))
    movement = model.start(places_m, cell_radius_m=200.0, min_distance_m=10.0, streams=Streams(1))
    low_m, high_m = streets_m.min(axis=1), streets_m.max(axis=1)
    used = np.zeros(len(streets_m), bool)
    for time_s in (0.0, 3.3, 40.0, 90.0):
        at_m = movement.positions_m(time_s)
        at_m = at_m[np.isfinite(at_m).all(axis=1) & (np.abs(at_m).max(axis=1) <= 200.0)]
        on = ((at_m[:, None] >= low_m - 0.06) & (at_m[:, None] <= high_m + 0.06)).all(axis=2)
        assert len(at_m) > 50
        assert on.any(axis=1).all()
        used |= on.any(axis=0)
    assert used.all()


@pytest.mark.parametrize("federations", ["all", "centre", [0, 3]])
@pytest.mark.parametrize("layout", [{"rings": 1}, {"rings": 1, "sectors": 3}])
def test_cells_are_counted_as_the_scenario_counts_them(
    layout: dict[str, int], federations: str | list[int]
) -> None:
    scenario = load({**RUN, "layout": {**layout, "federations": federations}})
    counted = (scenario.layout.cells, len(scenario.layout.served))
    assert _cells_of(yaml.safe_load(dump(scenario))) == counted


@pytest.mark.parametrize(
    ("federations", "where"),
    [("all", "7 cells with a federation each"), ([0, 1, 2, 3, 4, 5], "7 cells (6 with a server)")],
)
def test_cells_without_a_round_are_counted(federations: str | list[int], where: str, tmp_path: Path) -> None:
    """Two devices are in at most two cells, so all other cells have no rounds."""
    layout = {"rings": 1, "federations": federations}
    runs = load_runs(simulate({**RUN, "layout": layout}, tmp_path / "run", device="cpu"))
    assert runs.rounds["cell"].nunique() <= 2
    assert summary(runs)[0].startswith(f"2 devices in {where} run a workload")
