"""Test areas of a scenario: their shapes, their files, and the components that refer to areas."""

import gzip
import json
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError
from scipy.integrate import quad

from edgefl.errors import EdgeflError
from edgefl.places.areas import Area, Places
from edgefl.places.plane import LocalPlane
from edgefl.rng import Streams
from edgefl.scenario import scenario as scenarios
from edgefl.scenario.world import World
from tests.refusals import refused_at

HEAD = """name: w
sessions: {name: schedule, count: 1, rounds: 2}
workload: {payload_bits: 100000, flops_per_sample: 1000}
devices: {count: 200, mobility: {name: attraction, homes: home, rhythm: [{from_hour: 0, to: {home: 1}}]}}
"""
MUNICH = [11.57, 48.13]
# a park of about 370 m by 445 m, with a pond
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
SWAPPED = '{"type": "Polygon", "coordinates": [[[48.1, 11.5], [48.2, 11.5], [48.1, 11.6]]]}'
NET = '<net version="1.20"><location netOffset="0,0" convBoundary="-10.00,0.00,400.00,250.00"/></net>'


def homes_m(folder: Path, rest: str) -> np.ndarray:
    """Return the initial positions of 200 devices that live in the area `home`."""
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
    # in a uniform disc the squared distance is uniform; the mean of 200 is checked to 4 standard errors
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


@pytest.mark.parametrize("feature", ["park", "'7'", "7", "{name: park}"])
def test_polygons_of_a_map_in_degrees(tmp_path: Path, feature: str) -> None:
    (tmp_path / "map.geojson").write_text(json.dumps(PARK))
    geo = f"home: {{geojson: {{path: {tmp_path}/map.geojson, feature: {feature}}}}}"
    at = homes_m(tmp_path, f"origin_lon_lat: {MUNICH}\nareas: {{{geo}}}")
    plane = LocalPlane(*MUNICH)
    north_east = plane.to_m([[11.575, 48.134]])[0]
    assert north_east == pytest.approx([372.1, 444.9], rel=1e-3)
    assert np.all((at > -0.01) & (at < north_east + 0.1))
    assert np.all(np.ptp(at, axis=0) > 0.95 * north_east)
    # no device starts in the pond, a triangle whose long side rises from west to east
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
        (SWAPPED, "check their order"),
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


BERLIN = (13.4, 52.5)


def near_berlin(*corners_m: tuple[float, float]) -> list[list[float]]:
    """Return a ring, in degrees, with corners at these metres from BERLIN, by WGS 84's radii of curvature there."""
    lat, e2 = np.radians(BERLIN[1]), 0.00669437999014
    flat = 1 - e2 * np.sin(lat) ** 2
    per_deg = np.radians(6_378_137.0) * np.array([np.cos(lat) / np.sqrt(flat), (1 - e2) / flat**1.5])
    ring = (np.array(BERLIN) + np.array(corners_m) / per_deg).tolist()
    return [*ring, ring[0]]


def square(west: float, south: float, east: float, north: float) -> list[list[float]]:
    return near_berlin((west, south), (east, south), (east, north), (west, north))


def collection(*features: tuple[dict[str, Any], Any], **members: Any) -> str:
    """Return a FeatureCollection of polygons, each with its properties and rings."""
    made = [
        {"type": "Feature", "properties": own, "geometry": {"type": "Polygon", "coordinates": rings}}
        for own, rings in features
    ]
    return json.dumps({"type": "FeatureCollection", **members, "features": made})


def region_of(folder: Path, text: str, feature: Any = None) -> tuple[Any, list[str]]:
    """Return the region of an area that is read from a file, and the notes about it."""
    (folder / "map.geojson").write_text(text)
    where = Places({}, LocalPlane(*BERLIN))
    return Area.model_validate({"geojson": {"path": folder / "map.geojson", "feature": feature}}).region(
        where
    ), where.notes


DISTRICT, GREEN = square(-300, -300, 300, 300), square(-150, -150, 150, 150)


@pytest.mark.parametrize(
    ("rings", "area_m2", "share"),
    [
        # share: fraction of the homes that are in the park of 300 x 300 m
        ([[DISTRICT], [GREEN]], 600**2, 0.25),
        ([[DISTRICT], [DISTRICT]], 600**2, 0.25),
        ([[square(-300, -300, 100, 100)], [square(-100, -100, 300, 300)]], 2 * 400**2 - 200**2, None),
        ([[DISTRICT], [GREEN], [square(-50, -50, 400, 50)]], 600**2 + 100 * 100, 0.25 * 36 / 37),
        ([[DISTRICT, GREEN]], 600**2 - 300**2, 0.0),
        ([[DISTRICT, GREEN], [GREEN]], 600**2, 0.25),
    ],
)
def test_features_of_a_file_are_united(
    tmp_path: Path, rings: list[Any], area_m2: float, share: float | None
) -> None:
    """Only a polygon's inner rings are holes (RFC 7946, 3.1.6), not the rings of other polygons."""
    region, notes = region_of(tmp_path, collection(*(({"name": "A"}, one) for one in rings)), "A")
    assert region.areas_m2.sum() == pytest.approx(area_m2, rel=2e-4)  # the plane's error within 300 m
    assert not notes
    homes = 2000
    at = region.points_m(np.random.default_rng(2).random((3, homes)))
    if share is not None:
        error = np.sqrt(share * (1 - share) / homes)
        assert np.mean(np.abs(at).max(axis=0) < 150) == pytest.approx(share, abs=max(4 * error, 1e-3))


def test_the_proposed_origin_is_the_middle_of_the_file(tmp_path: Path) -> None:
    """A ring repeats its first corner, and a file has features beside the chosen one: neither moves the middle."""
    ring = [[179.9, 50.0], [-179.9, 50.0], [-179.9, 50.1], [179.9, 50.1], [179.9, 50.0]]
    far = [[179.5, 50.0], [179.6, 50.0], [179.6, 50.3], [179.5, 50.0]]
    (tmp_path / "map.geojson").write_text(collection(({"name": "A"}, [ring]), ({"name": "B"}, [far])))
    for feature in (None, "A", "B"):
        area = Area.model_validate({"geojson": {"path": tmp_path / "map.geojson", "feature": feature}})
        with refused_at("", "the centre of this file is [179.8, 50.15]"):
            area.region(Places())


def test_repairs_are_noted(tmp_path: Path) -> None:
    bow_tie = near_berlin((0, 0), (200, 200), (200, 0), (0, 200))
    region, notes = region_of(
        tmp_path, collection(({}, [bow_tie]), ({}, [DISTRICT, [[13.4, 52.5]]]), ({}, [[]]))
    )
    assert region.areas_m2.sum() == pytest.approx(600**2, rel=2e-4)
    crossing, short = notes
    assert "1 of 3 polygons have sides that cross or coincide" in crossing
    assert "rings of fewer than three corners left out: 2" in short


NAMED = [
    ({"name": "A", "GEN": "Mitte", "BEZ": "Bezirk", "names": {"primary": "Mitte"}}, [GREEN]),
    ({"name": "B", "GEN": "Wedding", "BEZ": "Bezirk", "admin_level": 9}, [DISTRICT]),
    ({"NAME": "Neuko\u0308lln", "BEZ": "Stadt", "alt": "Wedding"}, [square(0, 0, 100, 100)]),
]


@pytest.mark.parametrize(
    ("feature", "area_m2"),
    [
        ("A", 300**2),
        ("Mitte", 300**2),
        ({"names.primary": "Mitte"}, 300**2),
        ({"GEN": "Wedding"}, 600**2),
        ({"alt": "Wedding"}, 100**2),
        ({"admin_level": 9}, 600**2),
        ({"BEZ": "Bezirk"}, 600**2),
        ({"BEZ": "Bezirk", "GEN": "Mitte"}, 300**2),
        ("Neuk\u00f6lln", 100**2),
    ],
)
def test_features_are_chosen_by_any_property(tmp_path: Path, feature: Any, area_m2: float) -> None:
    region, _ = region_of(tmp_path, collection(*NAMED), feature)
    assert region.areas_m2.sum() == pytest.approx(area_m2, rel=2e-4)


@pytest.mark.parametrize(
    ("feature", "words"),
    [
        ("Wedding", ("GEN of 1, alt of 1", "feature: {GEN: Wedding}")),
        ("Spandau", ("no feature 'Spandau'", "known names: 'A', 'B'")),
        ({"GEN": "Spandau"}, ("no feature has {GEN: Spandau}", "'Mitte', 'Wedding'")),
        ({"gen": "Mitte"}, ("no feature has {gen: Mitte}", "properties of its features: name, GEN, BEZ")),
    ],
)
def test_features_that_are_not_clear_are_refused(
    tmp_path: Path, feature: Any, words: tuple[str, ...]
) -> None:
    with refused_at("geojson.feature", "map.geojson", *words):
        region_of(tmp_path, collection(*NAMED), feature)


@pytest.mark.parametrize(
    "feature", [{"GEN": ["Mitte"]}, {"GEN": None}, ["Mitte"], {"names": {"primary": "Mitte"}}]
)
def test_features_of_another_form_are_refused(feature: Any) -> None:
    with pytest.raises(ValidationError, match=r"must be a name, or \{property: name") as error:
        Area.model_validate({"geojson": {"path": "a", "feature": feature}})
    assert error.value.error_count() == 1


UTM = [[391000, 5819000], [392000, 5819000], [392000, 5820000], [391000, 5819000]]
LINE = '{"type": "LineString", "coordinates": [[13.4, 52.5], [13.5, 52.5]]}'
TOKYO = [[35.6, 139.7], [35.7, 139.7], [35.7, 139.8]]


def crs(name: str) -> dict[str, Any]:
    return {"type": "name", "properties": {"name": name}}


def in_utm(zone: int, east_m: float, north_m: float) -> np.ndarray:
    """Return longitude and latitude of a UTM position, by iterating the inverse transverse Mercator projection."""
    plane, lon_lat = LocalPlane(6.0 * zone - 183.0, 52.0), np.array([6.0 * zone - 183.0, 52.5])
    e2 = 0.00669437999014  # WGS 84
    equator_m, _ = quad(
        lambda lat: 6_378_137.0 * (1 - e2) / (1 - e2 * np.sin(lat) ** 2) ** 1.5, 0, np.radians(52)
    )
    wanted = np.array([(east_m - 500_000) / 0.9996, north_m / 0.9996 - equator_m])
    for _ in range(20):
        miss = wanted - plane.to_m(lon_lat)[0]
        lon_lat = lon_lat + miss / (111_320 * np.array([np.cos(np.radians(lon_lat[1])), 1.0]))
    return lon_lat


@pytest.mark.parametrize(
    "named",
    [crs("urn:ogc:def:crs:EPSG::25833"), crs("EPSG:32633"), {"type": "EPSG", "properties": {"code": 25833}}],
)
def test_a_projected_file_is_read(tmp_path: Path, named: dict[str, Any]) -> None:
    pytest.importorskip("pyproj")
    region, _ = region_of(tmp_path, collection(({"name": "A"}, [UTM]), crs=named))
    corners = np.array([in_utm(33, *corner) for corner in UTM[:3]])
    expected = LocalPlane(*BERLIN).to_m(corners)
    (drawn,) = region.drawn()["points"]
    for corner in expected:
        assert np.abs(np.array(drawn) - corner).max(axis=1).min() < 0.2


def test_web_mercator_is_read(tmp_path: Path) -> None:
    """Files may have x = R lon, y = R ln tan(45 degrees + lat / 2), with the equator's radius (EPSG note 7-2)."""
    pytest.importorskip("pyproj")
    degrees = np.radians(DISTRICT)
    x, y = 6_378_137.0 * np.array([degrees[:, 0], np.log(np.tan(np.pi / 4 + degrees[:, 1] / 2))])
    ring = np.stack([x, y], axis=1).tolist()
    region, _ = region_of(tmp_path, collection(({}, [ring]), crs=crs("urn:ogc:def:crs:EPSG::3857")))
    assert region.areas_m2.sum() == pytest.approx(600**2, rel=2e-4)


@pytest.mark.parametrize("name", ["urn:ogc:def:crs:OGC:1.3:CRS84", "urn:ogc:def:crs:EPSG::4326", "EPSG:4258"])
def test_degrees_need_no_pyproj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    region, _ = region_of(tmp_path, collection(({}, [DISTRICT]), crs=crs(name)))
    assert region.areas_m2.sum() == pytest.approx(600**2, rel=2e-4)


def test_without_pyproj_the_files_own_word_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    name = "urn:ogc:def:crs:EPSG::25833"
    with refused_at("geojson.path", name, "pip install 'edgefl-cosim[maps]'", "WGS 84 (EPSG:4326)"):
        region_of(tmp_path, collection(({}, [UTM[:3]]), crs=crs(name)))


@pytest.mark.parametrize(
    ("ring", "named", "words"),
    [
        (UTM[:3], None, ("feature 1", "(391000, 5.819e+06)", "crs")),
        (TOKYO, None, ("feature 1", "(35.6, 139.7) has the latitude first")),
        (DISTRICT, crs("EPSG:0"), ("'EPSG:0' is unknown",)),
        (DISTRICT, {"type": "link", "properties": {"href": "x"}}, ("names no coordinate reference system",)),
        (
            DISTRICT,
            crs("EPSG:25833"),
            (
                "looks like degrees",
                "crs 'EPSG:25833' is not in degrees: remove crs",
                "export the file in WGS 84",
            ),
        ),
        (TOKYO, crs("EPSG:3857"), ("(35.6, 139.7) looks like degrees",)),
        (UTM[:3], crs("EPSG:4326"), ("crs 'EPSG:4326' is in degrees: name the projection there, or export",)),
        (UTM[:3], crs("EPSG:4267"), ("crs 'EPSG:4267' is in degrees: name the projection there, or export",)),
    ],
)
def test_coordinates_that_fit_no_crs_are_refused(
    tmp_path: Path, ring: Any, named: Any, words: tuple[str, ...]
) -> None:
    pytest.importorskip("pyproj")
    with refused_at("geojson.path", *words):
        region_of(tmp_path, collection(({}, [ring]), **({"crs": named} if named else {})))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LINE, ("1 LineString", "lines are for streets")),
        ('{"type": "FeatureCollection", "features": []}', ("holds no geometry",)),
        ("<osm version='0.6'/>", ("is XML", "sumo_net", "osmtogeojson")),
        ('{"type": "Topology", "objects": {}}', ("is TopoJSON", "export it as GeoJSON")),
        ('{"geometryType": "esriGeometryPolygon", "features": []}', ("is JSON of ArcGIS",)),
        (
            '{"type": "Feature", "properties": [], "geometry": {"type": "Polygon"}}',
            ("feature 1", "'coordinates'"),
        ),
        ('{"type": "FeatureCollection", "features": [3]}', ("feature 1", "correct or remove it")),
    ],
)
def test_files_without_an_area_say_what_they_are(
    tmp_path: Path, content: str, words: tuple[str, ...]
) -> None:
    with refused_at("geojson.path", "map.geojson", *words):
        region_of(tmp_path, content)


def test_areas_of_classes(tmp_path: Path) -> None:
    """The mobility model of a device class finds the areas that it names; an unknown area is refused at its key."""
    file = tmp_path / "classes.yaml"
    lives = "{name: attraction, homes: %s, rhythm: [{from_hour: 0, to: {home: 1}}]}"
    text = HEAD.rpartition("devices:")[0] + (
        "areas: {home: {disc: {centre_m: [300, 0], radius_m: 5}}}\n"
        "devices:\n  count: 6\n  classes_by: ids\n  classes:\n    still: {count: 3}\n"
        f"    people:\n      count: 3\n      mobility: {lives}\n"
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
