"""Reading streets from map files: lines of GeoJSON, and the edges of a SUMO network."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.places import map_files
from edgefl.places.map_files import Pair, reading, sumo_elements, too_large

MOST_POINTS = 2_000_000  # corners of streets: some 100 bytes each while they are read


def geojson_lines(path: Path, feature: str | None) -> list[list[Pair]]:
    """Read lines, in degrees.

    Args:
        path: a FeatureCollection, a Feature or a geometry.
        feature: `id` of the features, or `name` among their properties; None: all lines.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    lines = map_files.geojson_lines(path, feature, _lines)
    if not lines:
        raise EdgeflError(f"{path}: no line in it; streets are LineStrings", ("geojson", "path"))
    return lines


def sumo_lines(path: Path) -> list[list[Pair]]:
    """Read the streets of a network, in its own metres: from junction to junction, by the shape of the edge.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    edges: list[tuple[str, str, str]] = []
    junctions: dict[str, Pair] = {}
    points = 0
    with reading(path, "sumo_net"):
        for name, attributes in sumo_elements(path):
            # edges within junctions and those of walking areas have a function
            if name == "edge" and "from" in attributes and "function" not in attributes:
                shape = attributes.get("shape", "")
                edges.append((attributes["from"], attributes["to"], shape))
                points += 2 + shape.count(" ")
                if points > MOST_POINTS:
                    raise too_large(path, f"{MOST_POINTS:,} corners of streets")
            elif name == "junction" and attributes.get("type") != "internal":
                junctions[attributes["id"]] = _pair(attributes["x"], attributes["y"])
        lines = [[junctions[one], *_shape(shape), junctions[other]] for one, other, shape in edges]
    if not lines:
        raise EdgeflError(
            f"{path}: no street in it; give a network of netconvert or netgenerate", ("sumo_net", "path")
        )
    return lines


def _lines(geometry: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """Yield the lines of a geometry; polygons and points are left out."""
    if geometry.get("type") == "LineString":
        yield geometry["coordinates"]
    elif geometry.get("type") == "MultiLineString":
        yield from geometry["coordinates"]


def _shape(text: str) -> list[Pair]:
    """Read the corners of an edge, without its ends: these are the junctions."""
    corners = [_pair(*corner.split(",")[:2]) for corner in text.split()]
    return corners[1:-1]


def _pair(x: str, y: str) -> Pair:
    pair = float(x), float(y)
    if not math.isfinite(sum(pair)):
        raise ValueError(f"{x}, {y} is no place")
    return pair
