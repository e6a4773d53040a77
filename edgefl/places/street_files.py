"""Reading streets from map files: lines of GeoJSON, and the edges of a SUMO network."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError
from edgefl.places.area_files import bytes_of_json, degrees, features_of, reading

MOST_POINTS = 2_000_000  # corners of streets: some 100 bytes each while they are read
Lines = list[list[tuple[float, float]]]


def geojson_lines(path: Path, feature: str | None) -> Lines:
    """Read lines, in degrees.

    Args:
        path: a FeatureCollection, a Feature or a geometry.
        feature: `id` of the features, or `name` among their properties; None: all lines.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    with reading(path, "geojson"):
        features = features_of(path, json.loads(bytes_of_json(path)), feature)
        lines = [
            [(degrees(corner[0]), degrees(corner[1])) for corner in line]
            for one in features
            for line in _lines(one.get("geometry") or {})
        ]
    if not lines:
        raise EdgeflError(f"{path}: no line in it; streets are LineStrings", ("geojson", "path"))
    return lines


def sumo_lines(path: Path) -> Lines:
    """Read the streets of a network, in its own metres: from junction to junction, by the shape of the edge.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    edges: list[tuple[str, str, str]] = []
    junctions: dict[str, tuple[float, float]] = {}
    points = 0

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        nonlocal points
        # edges within junctions and those of walking areas have a function
        if name == "edge" and "from" in attributes and "function" not in attributes:
            shape = attributes.get("shape", "")
            edges.append((attributes["from"], attributes["to"], shape))
            points += 2 + shape.count(" ")
        elif name == "junction" and attributes.get("type") != "internal":
            junctions[attributes["id"]] = _pair(attributes["x"], attributes["y"])

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    with reading(path, "sumo_net"):
        with foreign_files.opened(path) as file:
            for _ in foreign_files.parse_xml(parser, file):
                if points > MOST_POINTS:
                    raise EdgeflError(
                        f"{path}: more than {MOST_POINTS:,} corners of streets; cut a smaller network out with"
                        " netconvert --keep-edges.in-boundary",
                        ("sumo_net", "path"),
                    )
        lines = [[junctions[one], *_shape(shape), junctions[other]] for one, other, shape in edges]
    if not lines:
        raise EdgeflError(
            f"{path}: no street in it; give a network of netconvert or netgenerate", ("sumo_net", "path")
        )
    return lines


def _lines(geometry: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """Yield the lines of a geometry; polygons and points are left out."""
    kind = geometry.get("type")
    if kind == "LineString":
        yield geometry["coordinates"]
    elif kind == "MultiLineString":
        yield from geometry["coordinates"]
    elif kind == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _lines(one)


def _shape(text: str) -> list[tuple[float, float]]:
    """Read the corners of an edge, without its ends: these are the junctions."""
    corners = [_pair(*corner.split(",")[:2]) for corner in text.split()]
    return corners[1:-1]


def _pair(x: str, y: str) -> tuple[float, float]:
    pair = float(x), float(y)
    if not math.isfinite(sum(pair)):
        raise ValueError(f"{x}, {y} is no place")
    return pair
