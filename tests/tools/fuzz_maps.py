"""Change map files at random: values, keys and nesting of GeoJSON, attributes of a SUMO network, or bytes."""

import json
import math
import re
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.tools.fuzz_mutations import FuzzCase

LON, LAT = 13.4, 52.5
SCENARIO = """\
name: maps
origin_lon_lat: [13.4, 52.5]
areas: {{town: {{{area}}}}}
streets: {{{streets}}}
devices:
  count: 3
  mobility: {{name: itinerary, mode: {mode}, addresses: {{home: town, work: town}}, plan: [{{leave: 0, to: work}}]}}
sessions: {{name: schedule, count: 1, rounds: 1}}
workload: {{payload_bits: 1000, flops_per_sample: 1.0e+3}}
"""
ODD: tuple[Any, ...] = (
    *(
        None,
        True,
        0,
        -1,
        1e308,
        -1e308,
        1e-308,
        math.nan,
        math.inf,
        10**30,
        391_000.0,
        48.1,
        200,
        "",
        "x",
        "\ud800",
    ),
    *(
        [],
        {},
        [[]],
        [[[]]],
        [1],
        [1, 2],
        ["a", "b"],
        {"type": "Polygon"},
        {"a": {"b": {"c": [1]}}},
        "EPSG:25833",
    ),
)
WORDS = (
    "",
    "x",
    "nan",
    "inf",
    "1e999",
    "-1",
    "1,2",
    "1,2 3",
    "pedestrian",
    "all",
    "rail|",
    "\u00e4",
    "0" * 400,
    "&#0;",
)
NET = """<net version="1.20"><location convBoundary="0,0,500,500"/>
<edge id=":b_0" function="internal"><lane id=":b_0_0" shape="0,0 7,7"/></edge>
<edge id="ab" from="a" to="b" type="highway.path" shape="0,0 50,40 500,0"><lane id="ab_0" allow="pedestrian"/></edge>
<edge id="bc" from="b" to="c" type="railway.rail"><lane id="bc_0" disallow="rail"/></edge>
<junction id="a" type="priority" x="0" y="0"/><junction id="b" type="priority" x="500" y="0"/>
<junction id="c" type="priority" x="500" y="500"/><junction id=":b_0" type="internal" x="90" y="0"/></net>"""


def map_case(seed: int, number: int) -> FuzzCase:
    """Return the case of this number: a scenario with changed maps of an area and of streets."""
    rng = Random(f"maps {seed} {number}")
    damaged = [json.dumps(_town(rng)).encode(), json.dumps(_roads()).encode(), NET.encode()]
    for _ in range(rng.choice((1, 1, 2, 4))):
        which = rng.randrange(3)
        damaged[which] = _changed(damaged[which], rng)
    net = rng.random() < 0.4
    feature = rng.choice(("", "", ", feature: A", ", feature: {names.primary: A}", ", feature: 'zz'"))
    area = "sumo_net: {path: map.net.xml}" if rng.random() < 0.2 else f"geojson: {{path: town.json{feature}}}"
    streets = "sumo_net: {path: map.net.xml}" if net else "geojson: {path: roads.json}"
    text = SCENARIO.format(area=area, streets=streets, mode=rng.choice(("foot", "bicycle", "bus", "car")))
    names = ("town.json", "roads.json", "map.net.xml")
    return FuzzCase({"scenario.yaml": text.encode(), **dict(zip(names, damaged, strict=True))})


def _at(x: float, y: float) -> list[float]:
    return [round(LON + x / 67_700, 7), round(LAT + y / 111_000, 7)]


def _town(rng: Random) -> dict[str, Any]:
    """Return polygons: a polygon with a hole, overlapping polygons, a multipolygon, and random polygons."""

    def ring(*corners: tuple[float, float]) -> list[list[float]]:
        return [_at(*corner) for corner in (*corners, corners[0])]

    square, hole = ring((0, 0), (500, 0), (500, 500), (0, 500)), ring((100, 100), (200, 100), (150, 200))
    wild = ring(*((rng.uniform(0, 900), rng.uniform(0, 900)) for _ in range(rng.randint(3, 12))))
    geometries: list[dict[str, Any]] = [
        {"type": "Polygon", "coordinates": [square, hole]},
        {"type": "MultiPolygon", "coordinates": [[ring((400, 400), (800, 400), (600, 700))], [wild]]},
    ]
    geometries.append({"type": "GeometryCollection", "geometries": geometries[:]})
    features = [
        {
            "type": "Feature",
            "id": number,
            "properties": {"name": name, "names": {"primary": name}},
            "geometry": one,
        }
        for number, (name, one) in enumerate(zip("ABC", geometries, strict=True))
    ]
    system = {
        "type": "name",
        "properties": {"name": rng.choice(("EPSG:4326", "urn:ogc:def:crs:EPSG::25833"))},
    }
    crs = {"crs": system} if rng.random() < 0.3 else {}
    return {"type": "FeatureCollection", **crs, "features": features}


def _roads() -> dict[str, Any]:
    """Return lines whose tags have the formats of several programs."""
    tags: list[dict[str, Any]] = [
        {"highway": "residential"},
        {"highway": ["footway", "path"], "tags": {"foot": "yes"}},
        {"highway": None, "other_tags": '"railway"=>"rail","access"=>"no"'},
        {"subtype": "road", "class": "motorway"},
    ]
    corners = [_at(*corner) for corner in ((0, 0), (500, 0), (500, 500), (0, 500), (0, 0))]
    return {
        "type": "FeatureCollection",
        "features": [
            {
                "type": "Feature",
                "properties": own,
                "geometry": {"type": "LineString", "coordinates": corners[side : side + 2]},
            }
            for side, own in enumerate(tags)
        ],
    }


def _changed(content: bytes, rng: Random) -> bytes:
    kind = rng.random()
    if kind < 0.15:
        return content[: rng.randrange(len(content) + 1)]
    if kind < 0.3:
        begin = rng.randrange(max(1, len(content)))
        return content[:begin] + rng.randbytes(rng.randint(1, 20)) + content[begin + rng.randint(0, 20) :]
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        return _attribute(content, rng)
    holders = list(_holders(document))
    if holders:
        holder, key = rng.choice(holders)
        if rng.random() < 0.2:
            del holder[key]
        elif isinstance(holder, list) and rng.random() < 0.3:
            holder.append(rng.choice((holder[key], holder)) if rng.random() < 0.9 else [[holder[key]]])
        else:
            holder[key] = rng.choice(ODD)
    try:
        return json.dumps(document).encode("utf-8", "surrogatepass")
    except ValueError:  # a circle
        return b"[" * rng.choice((10, 100_000))


def _holders(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each dictionary and list of a tree with each of its keys."""
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from _holders(tree[key])


def _attribute(content: bytes, rng: Random) -> bytes:
    """Change or remove an attribute of an XML file."""
    found = list(re.finditer(rb' \w+="[^"]*"', content))
    if not found:
        return rng.choice((b"<osm/>", b"<net/>", b"{}", b"", content))
    one = rng.choice(found)
    name = one.group().partition(b"=")[0]
    word = b"" if rng.random() < 0.2 else name + b'="' + rng.choice(WORDS).encode() + b'"'
    return content[: one.start()] + word + content[one.end() :]
