"""Test shortest paths by an exhaustive search, links from places to streets, and sources of streets."""

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from edgefl.errors import EdgeflError
from edgefl.places.areas import Places
from edgefl.places.plane import LocalPlane
from edgefl.places.street_map import StreetMap, cut_at_crossings
from edgefl.places.streets import Streets
from edgefl.scenario import scenario as scenarios
from tests.refusals import refused_at

# a triangle with a tail, a parallel detour and a dead end; its corners are far apart
CORNERS = np.array(
    [(0, 0), (400, 0), (400, 300), (900, 350), (700, -200), (950, -150), (-100, 250)], dtype=float
)
PIECES = [(0, 1), (1, 2), (0, 2), (2, 3), (1, 4), (4, 5), (5, 3), (0, 6)]
EARTH = Places({}, LocalPlane(11.57, 48.13))
NET = """<net version="1.20"><location convBoundary="0,0,100,100"/>
<edge id=":b_0" function="internal"><lane id=":b_0_0" shape="0,0 7,7"/></edge>
<edge id="ab" from="a" to="b" shape="10,0 50,40 100,2"><lane id="ab_0" shape="1,1 2,2"/></edge>
<edge id="ba" from="b" to="a"><lane id="ba_0" shape="1,1 2,2"/></edge>
<junction id="a" type="priority" x="10.00" y="0.00"/>
<junction id="b" type="priority" x="100.00" y="0.00"/>
<junction id=":b_0" type="internal" x="90.00" y="0.00"/></net>"""


def hand_made() -> StreetMap:
    return StreetMap.of([CORNERS[list(piece)] for piece in PIECES])


def length_m(way: np.ndarray) -> float:
    return float(np.hypot(*np.diff(way, axis=0).T).sum())


def foot(place: np.ndarray, piece: tuple[int, int]) -> tuple[float, float]:
    """Return the distance from a place to a street segment, and how far along it the closest point is, in m."""
    begin, end, at = (complex(*each) for each in (*CORNERS[list(piece)], place))
    turned = (at - begin) / (end - begin) * abs(end - begin)
    along = min(max(turned.real, 0.0), abs(end - begin))
    return abs(turned - along), along


def all_walks(begin: int, end: int, met: tuple[int, ...] = ()) -> Iterator[float]:
    """Yield the lengths of all paths that visit no corner twice."""
    if begin == end:
        yield 0.0
        return
    for piece in PIECES:
        if begin in piece:
            on = sum(piece) - begin
            if on not in met:
                for rest in all_walks(on, end, (*met, begin)):
                    yield math.dist(CORNERS[begin], CORNERS[on]) + rest


def brute_force_m(one: np.ndarray, other: np.ndarray) -> float:
    ends = []
    for place in (one, other):
        (off_m, along_m), piece = min((foot(place, piece), piece) for piece in PIECES)
        whole_m = math.dist(*CORNERS[list(piece)])
        ends.append((off_m, along_m, piece, {piece[0]: along_m, piece[1]: whole_m - along_m}))
    (off_m, along_m, piece, to), (off_2_m, along_2_m, piece_2, to_2) = ends
    between = [
        a_m + walk_m + b_m
        for (a, a_m), (b, b_m) in itertools.product(to.items(), to_2.items())
        for walk_m in all_walks(a, b)
    ]
    if piece == piece_2:
        between.append(abs(along_m - along_2_m))
    return off_m + min(between) + off_2_m


def test_ways_are_as_short_as_the_shortest_of_all() -> None:
    places = np.random.default_rng(3).uniform((-200, -300), (1050, 450), (120, 2))
    one, other = places[:60], places[60:]
    ways = hand_made().ways(one.T, other.T)
    for begin, end, way in zip(one, other, ways, strict=True):
        assert length_m(way) == pytest.approx(brute_force_m(begin, end), rel=1e-12)
        assert (way[0].tolist(), way[-1].tolist()) == (begin.tolist(), end.tolist())
        [alone] = hand_made().ways(begin[:, None], end[:, None])
        assert np.array_equal(alone, way), "the way does not depend on other devices"
        # all steps between the first step and the last step are on streets
        for middle in (way[1:-2] + way[2:-1]) / 2:
            assert min(foot(middle, piece)[0] for piece in PIECES) < 1e-9


def test_two_places_by_one_piece_need_no_corner() -> None:
    [way] = hand_made().ways(np.array([[100.0, 30.0]]).T, np.array([[250.0, -20.0]]).T)
    assert way.tolist() == [[100, 30], [100, 0], [250, 0], [250, -20]]


def test_lines_of_the_scenario_meet_where_they_cross() -> None:
    cross = [
        np.array([(-50.0, 0), (50, 0)]),
        np.array([(0.0, -80), (0, 80)]),
        np.array([(50.0, 30), (50, -30)]),
    ]
    streets = StreetMap.of(cut_at_crossings(cross))
    [way] = streets.ways(np.array([[0.0, 80.0]]).T, np.array([[50.0, -30.0]]).T)
    assert way.tolist() == [[0, 80], [0, 0], [50, 0], [50, -30]]
    # without the cut the lines cross as bridges do, and only the longest part remains
    [way] = StreetMap.of(cross).ways(np.array([[0.0, 80.0]]).T, np.array([[30.0, -30.0]]).T)
    assert way.tolist() == [[0, 80], [0, -30], [30, -30]]


def test_the_longest_part_counts() -> None:
    """The connected part with the greatest length in metres is kept, not the part with the most segments."""
    small = [np.array([(x, 500.0), (x + 5, 500)]) for x in range(0, 50, 5)]
    streets = StreetMap.of([*small, np.array([(0.0, 0), (300, 0)])])
    assert streets.lengths_m.tolist() == [300]
    assert sorted(map(tuple, streets.corners_m.T.tolist())) == [(0, 0), (300, 0)]


def test_a_sumo_network_runs_from_junction_to_junction(tmp_path: Path) -> None:
    (tmp_path / "a.net.xml").write_text(NET)
    source = {"sumo_net": {"path": tmp_path / "a.net.xml", "origin_m": [10, 0]}}
    streets = Streets.model_validate(source).read(Places()).map_for("foot")
    assert sorted(map(tuple, streets.corners_m.T.tolist())) == [(0, 0), (40, 40), (90, 0)]
    assert sorted(streets.lengths_m) == pytest.approx(sorted([math.hypot(40, 40), math.hypot(50, 40), 90]))


def test_lines_of_geojson(tmp_path: Path) -> None:
    def line(name: str, kind: str, coordinates: Any) -> dict[str, Any]:
        geometry = {"type": kind, "coordinates": coordinates}
        return {"type": "Feature", "properties": {"name": name}, "geometry": geometry}

    features = [
        line("A", "LineString", [[11.57, 48.13], [11.58, 48.13]]),
        line("B", "MultiLineString", [[[11.58, 48.13], [11.58, 48.14, 500.0]]]),
        line("stop", "Point", [11.6, 48.1]),
    ]
    (tmp_path / "a.json").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    source = {"path": tmp_path / "a.json"}
    streets = Streets.model_validate({"geojson": source}).read(EARTH).map_for("foot")
    # a degree of latitude is 111.2 km, and a degree of longitude 111.2 km times the cosine of 48.13 degrees
    assert sorted(streets.lengths_m) == pytest.approx([1112 * math.cos(math.radians(48.13)), 1112], rel=0.003)
    only = Streets.model_validate({"geojson": {**source, "feature": "A"}}).read(EARTH).map_for("foot")
    assert only.ends.shape == (2, 1)
    with refused_at("", "'C'", "'A', 'B', 'stop'"):
        Streets.model_validate({"geojson": {**source, "feature": "C"}}).read(EARTH).map_for("foot")
    for told in (source, {**source, "feature": "A"}):  # the middle of the box around both lines
        with refused_at("", "set origin_lon_lat: ", "the centre of this file is [11.575, 48.135]"):
            Streets.model_validate({"geojson": told}).read(Places()).map_for("foot")
    with refused_at("", "LineString"):
        Streets.model_validate({"geojson": {**source, "feature": "stop"}}).read(EARTH).map_for("foot")


@pytest.mark.parametrize(
    "text", ["", "<net>", "<net></net>", NET.replace('to="b"', 'to="c"'), NET.replace("50,40", "50,x")]
)
def test_a_network_that_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.net.xml").write_text(text)
    with pytest.raises(EdgeflError, match=r"a\.net\.xml"):
        Streets.model_validate({"sumo_net": {"path": tmp_path / "a.net.xml"}}).read(Places()).map_for("foot")


@pytest.mark.parametrize(
    ("streets", "message"),
    [
        ({}, "set one source of streets"),
        ({"lines_m": [[[0, 0], [9, 0]]], "sumo_net": {"path": "a"}}, "got lines_m and sumo_net"),
        ({"lines_m": [[[0, 0]]]}, "at least 2"),
        ({"lines_m": [[[0, 0], [True, 0]]]}, "must be a number"),
    ],
)
def test_what_is_no_source_is_refused(streets: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Streets.model_validate(streets)


def test_streets_without_a_length_are_refused() -> None:
    with pytest.raises(EdgeflError, match="no length") as error:
        Streets.model_validate({"lines_m": [[[3, 4], [3, 4]]]}).read(Places()).map_for("foot")
    assert error.value.place == ("streets", "lines_m")


def test_streets_of_a_scenario_load_back(tmp_path: Path) -> None:
    (tmp_path / "a.net.xml").write_text(NET)
    (tmp_path / "a.yaml").write_text(
        "name: w\nsessions: {name: schedule, count: 1, rounds: 2}\ndevices: {count: 2}\n"
        "workload: {payload_bits: 100000, flops_per_sample: 1000}\nstreets: {sumo_net: {path: a.net.xml}}\n"
    )
    first = scenarios.load(tmp_path / "a.yaml")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "scenario.yaml").write_text(scenarios.dump(first))
    again = scenarios.load(tmp_path / "elsewhere" / "scenario.yaml")
    assert again.streets is not None
    assert again.streets.sumo_net is not None
    assert again.streets.sumo_net.path == tmp_path / "a.net.xml"
    assert scenarios.dump(again) == scenarios.dump(first)


RAIL = """<net version="1.16"><location netOffset="0,0" convBoundary="0,0,800,500"/>
<edge id="e1" from="A" to="B" type="highway.residential"><lane id="e1_0" disallow="rail" shape="0,0 0,500"/></edge>
<edge id="e2" from="B" to="C" type="highway.residential"><lane id="e2_0" disallow="rail"/></edge>
<edge id="e3" from="C" to="D" type="highway.residential"><lane id="e3_0" disallow="rail tram"/></edge>
<edge id="r1" from="A" to="D" type="railway.rail"><lane id="r1_0" allow="rail" shape="0,0 800,0"/></edge>
<edge id="m1" from="B" to="D" type="highway.motorway"><lane id="m1_0" allow="passenger bus"/></edge>
<junction id="A" type="priority" x="0" y="0"/><junction id="B" type="priority" x="0" y="500"/>
<junction id="C" type="priority" x="800" y="500"/><junction id="D" type="priority" x="800" y="0"/></net>"""


def tagged(*lines: tuple[dict[str, Any], list[tuple[float, float]]]) -> str:
    """Return tagged lines in degrees, with corners in metres from EARTH's origin."""
    north, east = 111_320 * 0.9989, 111_320 * 1.0019 * math.cos(math.radians(48.13))
    features = [
        {
            "type": "Feature",
            "properties": tags,
            "geometry": {
                "type": "LineString",
                "coordinates": [[11.57 + x / east, 48.13 + y / north] for x, y in corners],
            },
        }
        for tags, corners in lines
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


ROUND = [(0.0, 0.0), (0.0, 500.0), (800.0, 500.0), (800.0, 0.0)]
SHORT = [ROUND[0], ROUND[3]]
PRIVATE = {"highway": "service", "access": "private"}
HOUSE = '{"type": "Polygon", "coordinates": [[[11, 48], [12, 48], [12, 49]]]}'
POWER = tagged(
    *(({"highway": "residential"}, ROUND[side : side + 2]) for side in range(3)),
    ({"power": "line", "voltage": "110000"}, SHORT),
    ({"highway": "motorway"}, [ROUND[1], ROUND[3]]),
)


def ways_m(folder: Path, name: str, content: str, mode: Any) -> tuple[float, list[str]]:
    """Return the length of the way from the first to the last corner of ROUND, and the notes."""
    (folder / name).write_text(content)
    source = "sumo_net" if name.endswith(".xml") else "geojson"
    where = Places({}, EARTH.plane if source == "geojson" else None)
    streets = Streets.model_validate({source: {"path": folder / name}}).read(where)
    (way,) = streets.map_for(mode).ways(np.array([ROUND[0]]).T, np.array([ROUND[3]]).T)
    streets.map_for(mode)  # a second call adds no note
    return length_m(way), where.noted()


@pytest.mark.parametrize(("name", "content"), [("a.net.xml", RAIL), ("a.geojson", POWER)])
def test_people_walk_where_they_may(tmp_path: Path, name: str, content: str) -> None:
    """Pedestrians take the detour of 1,800 m instead of 800 m of railway or power line; cars take the motorway."""
    closed = "railway.rail" if name == "a.net.xml" else "power=line"
    for mode, expected_m, number, what in (
        ("foot", 1800.0, 2, "motorway"),
        ("bicycle", 1800.0, 2, "motorway"),
        ("car", 500 + math.hypot(800, 500), 1, ""),
    ):
        (tmp_path / mode).mkdir()
        way_m, notes = ways_m(tmp_path / mode, name, content, mode)
        assert way_m == pytest.approx(expected_m, rel=1e-3)
        (note,) = notes
        assert (
            f"{number} of 5 lines of the map are left out, because mode {mode} is not allowed on them" in note
        )
        assert f"1 {closed}" in note
        assert what in note


@pytest.mark.parametrize(
    ("content", "expected_m", "note"),
    [
        # a footpath of OpenStreetMap between two roads is a short cut for pedestrians
        (tagged(({"highway": "primary"}, ROUND), ({"highway": "footway"}, SHORT)), 800.0, None),
        # a private street is left out, so the streets that meet it end there
        (
            tagged((PRIVATE, SHORT), ({"highway": "path"}, ROUND)),
            1800.0,
            "1 highway=service with access=private",
        ),
        # if no line has `highway`, every line is a street, except the river
        (tagged(({"NAME": "a"}, ROUND), ({"waterway": "river"}, SHORT)), 1800.0, "1 waterway=river"),
        (
            tagged(({}, ROUND), ({}, [(50.0, 50.0), (60.0, 50.0)])),
            1800.0,
            "0.553 % of the length of the streets",
        ),
    ],
)
def test_what_is_open_on_foot(tmp_path: Path, content: str, expected_m: float, note: str | None) -> None:
    way_m, notes = ways_m(tmp_path, "a.geojson", content, "foot")
    assert way_m == pytest.approx(expected_m, rel=1e-3)
    assert note in notes[0] if note else notes == []


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        # buildings are not streets, whether they are drawn as areas or as outlines
        ("a.geojson", HOUSE, ("1 Polygon", "areas")),
        (
            "a.geojson",
            tagged(({"building": "yes"}, ROUND)),
            ("no street of the map is open to mode", "1 building=yes"),
        ),
        (
            "a.geojson",
            tagged(({"highway": "motorway"}, ROUND)),
            ("1 highway=motorway", "open to mode bus and car"),
        ),
        ("a.geojson", RAIL, ("is XML", "sumo_net")),
        ("a.net.xml", POWER, ("not well-formed XML",)),
        ("a.net.xml", "<osm/>", ("<osm> is not a SUMO network", "netconvert --osm-files")),
        ("a.net.xml", RAIL.replace('to="B"', 'to="Z"'), ("edge 'e1'", "junction 'Z'")),
        ("a.net.xml", RAIL.replace('id="e2" from', 'id="e2" shape="0,x" from'), ("edge 'e2'", "shape '0,x'")),
    ],
)
def test_a_map_without_streets_says_what_it_is(
    tmp_path: Path, name: str, content: str, words: tuple[str, ...]
) -> None:
    with refused_at("", f"a.{name[2:]}", *words):
        ways_m(tmp_path, name, content, "foot")


def test_a_network_in_degrees_is_refused(tmp_path: Path) -> None:
    content = RAIL.replace('x="0"', 'x="11.57"').replace('x="800"', 'x="11.58"')
    content = content.replace('y="0"', 'y="48.13"').replace('y="500"', 'y="48.14"')
    with refused_at("sumo_net.path", "look like degrees", "--proj.utm"):
        ways_m(tmp_path, "a.net.xml", content, "foot")
