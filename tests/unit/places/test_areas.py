"""Areas of a scenario: shapes, files, and who names them."""

import gzip
import json
import re
from pathlib import Path

import numpy as np
import pytest

from edgefl.errors import EdgeflError
from edgefl.places.plane import LocalPlane
from edgefl.rng import Streams
from edgefl.scenario import scenario as scenarios
from edgefl.scenario.world import World

HEAD = """name: w
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 100000, flops_per_sample: 1000}
devices: {count: 200, mobility: {name: attraction, homes: home, rhythm: [{from_hour: 0, home: 1}]}}
"""
MUNICH = [11.57, 48.13]
# a quarter of a kilometre, with a pond
PARK = {
    "type": "FeatureCollection",
    "features": [
        {
            "type": "Feature",
            "id": 7,
            "properties": {"name": "park"},
            "geometry": {
                "type": "MultiPolygon",
                "coordinates": [
                    [
                        [[11.57, 48.13], [11.575, 48.13], [11.575, 48.134], [11.57, 48.134], [11.57, 48.13]],
                        [[11.572, 48.131], [11.573, 48.131], [11.573, 48.133], [11.572, 48.131]],
                    ]
                ],
            },
        },
        {
            "type": "Feature",
            "properties": {"name": "stop"},
            "geometry": {"type": "Point", "coordinates": [11.6, 48.1]},
        },
    ],
}
NET = '<net version="1.20"><location netOffset="0,0" convBoundary="-10.00,0.00,400.00,250.00"/></net>'


def homes_m(folder: Path, rest: str) -> np.ndarray:
    """Where 200 devices begin that live in the area `home`."""
    file = folder / "a.yaml"
    file.write_text(HEAD + rest)
    loaded = scenarios.load(file)
    written = folder / "b.yaml"
    written.write_text(scenarios.dump(loaded))
    with loaded.naming_places():
        first, again = (
            World(one, Streams(one.seed)).movement.positions_m(0.0)
            for one in (loaded, scenarios.load(written))
        )
    assert np.array_equal(first, again)
    return first


def refusal(folder: Path, rest: str) -> str:
    with pytest.raises(EdgeflError) as error:
        homes_m(folder, rest)
    return str(error.value)


def test_discs_rectangles_and_polygons(tmp_path: Path) -> None:
    at = homes_m(tmp_path, "areas: {home: {disc: {centre_m: [300, -40], radius_m: 20}}}")
    away_m = np.hypot(*(at - [300, -40]).T)
    assert 18 < away_m.max() <= 20
    # uniform in area: the square of the distance is uniform; the mean of 200 of them, to 4 standard errors
    assert np.mean((away_m / 20) ** 2) == pytest.approx(0.5, abs=4 / np.sqrt(12 * 200))
    at = homes_m(tmp_path, "areas: {home: {rectangle: {from_m: [10, 0], to_m: [-20, 5]}}}")
    assert np.all((at >= [-20, 0]) & (at <= [10, 5]))
    assert np.all(at.max(axis=0) - at.min(axis=0) > [28, 4.6])
    at = homes_m(tmp_path, "areas: {home: {polygon: {points_m: [[0, 0], [100, 0], [0, 100]]}}}")
    assert np.all((at > 0) & (at.sum(axis=1, keepdims=True) < 100))


def test_other_areas_leave_those_who_live_in_one_where_they_are(tmp_path: Path) -> None:
    home = "home: {disc: {centre_m: [30, 0], radius_m: 20}}"
    more = f"areas: {{lake: {{disc: {{centre_m: [0, 0], radius_m: 5}}}}, {home}}}"
    assert np.array_equal(homes_m(tmp_path, f"areas: {{{home}}}"), homes_m(tmp_path, more))


@pytest.mark.parametrize("feature", ["park", "7"])
def test_polygons_of_a_map_in_degrees(tmp_path: Path, feature: str) -> None:
    (tmp_path / "map.geojson").write_text(json.dumps(PARK))
    geo = f"home: {{geojson: {{path: {tmp_path}/map.geojson, feature: '{feature}'}}}}"
    at = homes_m(tmp_path, f"origin_lon_lat: {MUNICH}\nareas: {{{geo}}}")
    plane = LocalPlane(*MUNICH)
    north_east = plane.to_m([[11.575, 48.134]])[0]
    assert north_east == pytest.approx([372.1, 444.9], rel=1e-3)
    assert np.all((at > -0.01) & (at < north_east + 0.1))
    assert np.all(np.ptp(at, axis=0) > 0.95 * north_east)
    # nobody lives in the pond: a triangle whose long side rises from west to east
    west_m, south_m = plane.to_m([[11.572, 48.131]])[0]
    east_m, north_m = plane.to_m([[11.573, 48.133]])[0]
    x, y = (at[:, 0] - west_m) / (east_m - west_m), (at[:, 1] - south_m) / (north_m - south_m)
    assert not np.any((x < 0.99) & (y > 0.01) & (y < x - 0.01))


@pytest.mark.parametrize("name", ["town.net.xml", "town.net.xml.gz"])
def test_the_area_of_a_sumo_network(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(NET.encode()) if name.endswith("gz") else NET.encode())
    area = f"areas: {{home: {{sumo_net: {{path: {tmp_path}/{name}, origin_m: [200, 100]}}}}}}"
    at = homes_m(tmp_path, area)
    assert np.all((at >= [-210, -100]) & (at <= [200, 150]))
    assert np.all(np.ptp(at, axis=0) > [390, 235])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{}", "is not GeoJSON by RFC 7946"),
        ("[1]", "is not GeoJSON"),
        ("{", "is not GeoJSON"),
        ('{"type": "Point", "coordinates": [1, 2]}', "holds 1 Point, but an area needs polygons"),
        ('{"type": "Polygon", "coordinates": [[[1, "x"], [2, 2], [3, 1]]]}', "is not GeoJSON"),
        (
            '{"type": "Polygon", "coordinates": [[[48.1, 11.5], [48.2, 11.5], [48.1, 11.6]]]}',
            "check their order",
        ),
        (json.dumps(PARK), "no feature 'lake'; known names: '7', 'park', 'stop'"),
    ],
)
def test_map_files_that_cannot_be_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "map.json").write_text(content)
    feature = ", feature: lake" if "lake" in message else ""
    area = f"areas: {{home: {{geojson: {{path: {tmp_path}/map.json{feature}}}}}}}"
    text = refusal(tmp_path, f"origin_lon_lat: {MUNICH}\n{area}")
    place = "feature" if feature else "path"
    assert re.match(rf".*a\.yaml:6 areas\.home\.geojson\.{place}: .*{re.escape(message)}", text), text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("<net/>", "has no <location convBoundary=...>"),
        ('<net><location convBoundary="0,0,1"/></net>', "is not a SUMO network"),
        ('<net><location convBoundary="0,0,0,1"/></net>', "has no area"),
        ("<net>", "map.xml:1: not well-formed XML"),
        (
            '<?xml version="1.0" encoding="klingon"?><net/>',
            "map.xml: cannot be read (unknown encoding: klingon",
        ),
    ],
)
def test_networks_that_cannot_be_are_refused(content: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "map.xml").write_text(content)
    text = refusal(tmp_path, f"areas: {{home: {{sumo_net: {{path: {tmp_path}/map.xml}}}}}}")
    assert re.match(rf".*a\.yaml:5 areas\.home\.sumo_net\.path: .*{re.escape(message)}", text), text


def test_areas_of_classes(tmp_path: Path) -> None:
    """A class's own movement finds its areas; one that there is not is refused at its place."""
    file = tmp_path / "classes.yaml"
    lives = "{name: attraction, homes: %s, rhythm: [{from_hour: 0, home: 1}]}"
    text = HEAD.rpartition("devices:")[0] + (
        "areas: {home: {disc: {centre_m: [300, 0], radius_m: 5}}}\n"
        "devices:\n"
        "  count: 6\n"
        "  classes_by: ids\n"
        "  classes:\n"
        "    still: {count: 3}\n"
        "    people:\n"
        "      count: 3\n"
        f"      mobility: {lives}\n"
    )
    file.write_text(text % "home")
    world = World(scenarios.load(file), Streams(1))
    far_m = np.hypot(*(world.movement.positions_m(0.0) - [300, 0]).T)
    assert (far_m <= 5).tolist() == [False] * 3 + [True] * 3
    assert world.may_cross
    file.write_text(text % "hom")
    place = r"classes\.yaml:\d+ devices\.classes\.people\.mobility\.homes"
    with pytest.raises(EdgeflError, match=f"{place}: no area 'hom'"):
        scenarios.load(file)
