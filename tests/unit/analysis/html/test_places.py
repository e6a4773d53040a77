"""The reader's own drawing of the layout, areas and streets is that of the engine."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from edgefl.analysis.runs.places import areas_of, hexagonal_sites_m, images_m, layout_of, local_m, streets_of
from edgefl.channel.layout import Wraparound, hexagonal_sites
from edgefl.mobility.highway import Highway
from edgefl.mobility.manhattan import Manhattan
from edgefl.places.plane import LocalPlane
from edgefl.rng import Streams

CELL = {"radius_m": 250.0}
PLAIN = {"sectors": 1, "azimuth_deg": 30.0, "rings": 0, "isd_m": 200.0}


@pytest.mark.parametrize("rings", [1, 2])
def test_sites_and_their_copies_are_those_of_the_channel(rings: int) -> None:
    sites_m = hexagonal_sites(rings, 200.0)
    np.testing.assert_allclose(hexagonal_sites_m(rings, 200.0), sites_m, atol=1e-9)
    world = Wraparound(rings, 200.0)
    points_m = np.random.default_rng(1).uniform(-400, 400, (200, 2))
    nearest_m = np.linalg.norm(world.displacement_m(points_m, sites_m), axis=-1)
    copies_m = sites_m[None] + images_m(rings, 200.0)[:, None]
    mine_m = np.linalg.norm(points_m[:, None, None] - copies_m, axis=-1).min(axis=1)
    inside = np.linalg.norm(points_m, axis=1) < (rings + 0.5) * 200.0
    assert inside.sum() > 50
    np.testing.assert_allclose(mine_m[inside], nearest_m[inside])


def test_one_cell_hexagons_and_open_sites() -> None:
    assert layout_of({"cell": CELL, "layout": PLAIN}) == {
        "sectors": 1,
        "azimuth_deg": 30.0,
        "images": [[0.0, 0.0]],
        "shape": "disc",
        "sites": [[0.0, 0.0]],
        "isd_m": 0.0,
        "radius_m": 250.0,
    }
    hexagons = layout_of({"cell": CELL, "layout": PLAIN | {"rings": 1, "edge": "wraparound"}})
    assert (hexagons["shape"], len(hexagons["sites"]), len(hexagons["images"])) == ("hexagons", 7, 7)
    guarded = layout_of({"cell": CELL, "layout": PLAIN | {"rings": 1, "edge": "guard_ring"}})
    assert len(guarded["images"]) == 1
    free = layout_of({"cell": CELL, "layout": PLAIN | {"sites": [[0, 0], [300, 400]]}})
    assert (free["shape"], free["radius_m"]) == ("open", 750.0)


def test_areas_have_their_shapes() -> None:
    areas = {
        "park": {"disc": {"centre_m": [1, 2], "radius_m": 3}},
        "station": {"rectangle": {"from_m": [0, 0], "to_m": [2, 1]}},
        "square": {"polygon": {"points_m": [[0, 0], [4, 0], [0, 4]]}},
    }
    notes: list[str] = []
    park, station, square = areas_of({"areas": areas}, notes)
    assert park == {"name": "park", "centre": [1, 2], "radius": 3}
    assert station["points"] == [[[0, 0], [2, 0], [2, 1], [0, 1]]]
    assert square["points"] == [[[0, 0], [4, 0], [0, 4]]]
    assert notes == []


def test_polygons_of_a_map_lie_where_the_engine_has_them(tmp_path: Path) -> None:
    ring = [[17.03, 51.10], [17.05, 51.10], [17.05, 51.12], [17.03, 51.10]]
    other = [[17.0, 51.0], [17.01, 51.0], [17.0, 51.01], [17.0, 51.0]]
    features = [
        {"type": "Feature", "id": "park", "geometry": {"type": "Polygon", "coordinates": [ring]}},
        {"type": "Feature", "properties": {"name": "both"},
         "geometry": {"type": "MultiPolygon", "coordinates": [[ring], [other]]}},
    ]  # fmt: skip
    file = tmp_path / "town.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    areas = {name: {"geojson": {"path": str(file), "feature": name}} for name in ("park", "both")}
    park, both = areas_of({"areas": areas, "origin_lon_lat": [17.04, 51.11]}, [])
    exact_m = LocalPlane(17.04, 51.11).to_m(ring)
    assert (len(park["points"]), len(both["points"])) == (1, 2)
    np.testing.assert_allclose(park["points"][0], exact_m, atol=0.4)  # drawn to 0.1 m, curved by 0.3 m
    np.testing.assert_array_equal(park["points"][0], both["points"][0])


@pytest.mark.parametrize("latitude", [-60.0, 0.0, 51.0, 69.0])
def test_metres_within_ten_kilometres_are_the_planes_to_a_thousandth(latitude: float) -> None:
    north, east = np.array([[0.0, 0.08], [0.08, 0.0], [-0.05, 0.06]]).T
    corners_deg = np.stack([17.0 + east / np.cos(np.radians(latitude)), latitude + north], axis=1)
    exact_m = LocalPlane(17.0, latitude).to_m(corners_deg)
    away_m = np.linalg.norm(local_m(corners_deg, (17.0, latitude)) - exact_m, axis=1)
    assert (away_m < 2e-3 * np.linalg.norm(exact_m, axis=1)).all()


@pytest.mark.parametrize("model", [Manhattan(block_m=70.0), Highway(lanes=2)], ids=["manhattan", "highway"])
def test_whoever_drives_is_on_a_street_of_the_drawing(model: Manhattan | Highway) -> None:
    written = {"devices": {"mobility": {"name": type(model).__name__.lower(), **model.model_dump()}}}
    streets_m = np.array(streets_of(written, 200.0, []))  # [streets, 2 ends, 2]: along an axis
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


def test_streets_of_a_network_are_read_once_and_what_is_gone_is_said(tmp_path: Path) -> None:
    xml = b"""<net><location convBoundary="0,0,200,200"/>
      <edge id=":j" function="internal"><lane id=":j_0" shape="5,5 6,6"/></edge>
      <edge id="a"><lane id="a_0" shape="100,100 150.25,100"/><lane id="a_1" shape="0,3 9,3"/></edge>
      <edge id="b"><lane id="b_0" shape="100,100,7 100,180,7"/></edge></net>"""
    (tmp_path / "town.net.xml").write_bytes(xml)
    (tmp_path / "town.net.xml.gz").write_bytes(gzip.compress(xml))
    nets = ("town.net.xml", "town.net.xml.gz", "gone.net.xml")
    areas = {name: {"sumo_net": {"path": str(tmp_path / name), "origin_m": [100, 100]}} for name in nets}
    notes: list[str] = []
    devices = {"mobility": {"name": "static"}}
    streets = streets_of({"devices": devices, "areas": areas}, 200.0, notes)
    assert streets == [[[0.0, 0.0], [50.2, 0.0]], [[0.0, 0.0], [0.0, 80.0]]]
    (note,) = notes
    assert "The street map of area gone.net.xml is not drawn" in note


def test_the_map_of_streets_is_drawn_whatever_its_source(tmp_path: Path) -> None:
    devices = {"mobility": {"name": "itinerary"}}
    line = [[0.0, 0.0], [30.0, 40.0]]
    assert streets_of({"devices": devices, "streets": {"lines_m": [line]}}, 200.0, []) == [line]
    east_deg = 100 / 111_319.49  # at the equator
    lines = {"type": "MultiLineString", "coordinates": [[[17.0, 0.0], [17.0 + east_deg, 0.0]]]}
    (tmp_path / "map.geojson").write_text(json.dumps({"type": "Feature", "geometry": lines}))
    (tmp_path / "map.net.xml").write_text('<net><edge id="a"><lane id="a_0" shape="5,5 25,5"/></edge></net>')
    for name, source, expected in (
        ("map.geojson", {"geojson": {"path": str(tmp_path / "map.geojson")}}, [[0.0, 0.0], [100.0, 0.0]]),
        (
            "map.net.xml",
            {"sumo_net": {"path": str(tmp_path / "map.net.xml"), "origin_m": [5, 5]}},
            [[0, 0], [20, 0]],
        ),
    ):
        notes: list[str] = []
        scenario = {"devices": devices, "streets": source, "origin_lon_lat": [17.0, 0.0]}
        assert streets_of(scenario, 200.0, notes) == [expected]
        assert not notes
        (tmp_path / name).unlink()
        assert streets_of(scenario, 200.0, notes) == []
        assert "The map of the streets is not drawn" in notes[0]


def test_an_area_whose_map_is_gone_or_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "cut.geojson").write_text('{"type": "FeatureCollection", "features": [')
    names = ("cut.geojson", "gone.geojson")
    areas = {name: {"geojson": {"path": str(tmp_path / name)}} for name in names}
    notes: list[str] = []
    assert areas_of({"areas": areas, "origin_lon_lat": [17.0, 51.0]}, notes) == []
    assert [note.split(" is not drawn")[0] for note in notes] == [f"Area {name}" for name in names]
