"""Read map files: lines and polygons of GeoJSON, streets and boundary of a SUMO network."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError, quoted

LARGEST_FILE = 100_000_000  # bytes, unpacked
MOST_VALUES = 8_000_000  # lists, numbers and keys of a GeoJSON file, 100 bytes each in memory
MOST_POINTS = 2_000_000  # corners of streets, some 100 bytes each while reading
Pair = tuple[float, float]
# kinds of geometries, and the depth of lines in their coordinates; lines of polygons are outlines and holes
LINES = {"LineString": 0, "MultiLineString": 1}
POLYGONS = {"Polygon": 1, "MultiPolygon": 2}


def geojson_lines(
    path: Path, feature: str | None, kinds: Mapping[str, int], nothing: str
) -> list[list[Pair]]:
    """Read lines, in degrees.

    Args:
        path: a FeatureCollection, a Feature or a geometry.
        feature: `id` of the features, or `name` among their properties; if None, all features are read.
        kinds: kinds of geometries, LINES or POLYGONS; others are left out.
        nothing: error text for a file without any.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    with _reading(path, "geojson"):
        lines = [
            [(_degrees(corner[0]), _degrees(corner[1])) for corner in line]
            for one in _named(path, json.loads(_bytes_of_json(path)), feature)
            for geometry in _geometries(one.get("geometry") or {})
            if geometry.get("type") in kinds
            for line in _within(geometry["coordinates"], kinds[geometry["type"]])
        ]
    if not lines:
        raise EdgeflError(f"{path}: {nothing}", ("geojson", "path"))
    return lines


def sumo_boundary(path: Path) -> tuple[Pair, Pair]:
    """Read the lower left and upper right corner of a network, m, from `convBoundary` of its `<location>`.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    with _reading(path, "sumo_net"):
        locations = (each for name, each in _sumo_elements(path) if name == "location")
        boundary = next(locations, {}).get("convBoundary")
        if boundary is None:
            raise EdgeflError(
                f"{path}: has no <location convBoundary=...>; give a network of netconvert or netgenerate",
                ("sumo_net", "path"),
            )
        x0, y0, x1, y1 = (float(text) for text in boundary.split(","))
        if not (math.isfinite(x0 + y0 + x1 + y1) and x0 < x1 and y0 < y1):
            raise EdgeflError(f"{path}: convBoundary {boundary} has no area", ("sumo_net", "path"))
    return (x0, y0), (x1, y1)


def sumo_lines(path: Path) -> list[list[Pair]]:
    """Read the streets of a network, in its own coordinates, m: from junction to junction along each edge's shape.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    edges: list[tuple[str, str, str]] = []
    junctions: dict[str, Pair] = {}
    points = 0
    with _reading(path, "sumo_net"):
        for name, attributes in _sumo_elements(path):
            # edges with a function lie within junctions or walking areas
            if name == "edge" and "from" in attributes and "function" not in attributes:
                shape = attributes.get("shape", "")
                edges.append((attributes["from"], attributes["to"], shape))
                points += 2 + shape.count(" ")
                if points > MOST_POINTS:
                    raise _too_large(path, f"{MOST_POINTS:,} corners of streets")
            elif name == "junction" and attributes.get("type") != "internal":
                junctions[attributes["id"]] = _pair(attributes["x"], attributes["y"])
        lines = [[junctions[one], *_shape(shape), junctions[other]] for one, other, shape in edges]
    if not lines:
        raise EdgeflError(
            f"{path}: has no street; give a network of netconvert or netgenerate", ("sumo_net", "path")
        )
    return lines


def _sumo_elements(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield name and attributes of each element of a network.

    Raises:
        EdgeflError: the file is too large; names the remedy.
    """
    read: list[tuple[str, Mapping[str, str]]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: read.append((name, attributes))
    with foreign_files.opened(path) as file:
        for _ in foreign_files.parse_xml(parser, file):
            yield from read
            read.clear()
            if file.tell() > LARGEST_FILE:
                raise _too_large(path, f"{LARGEST_FILE // 1_000_000} MB, unpacked")


def _too_large(path: Path, most: str) -> EdgeflError:
    """Return the error about a network that exceeds a limit."""
    return EdgeflError(
        f"{path}: has more than {most}; cut out a smaller network with netconvert --keep-edges.in-boundary",
        ("sumo_net", "path"),
    )


@contextmanager
def _reading(path: Path, kind: str) -> Iterator[None]:
    """Add file and remedy to errors; kind: key of the file, geojson or sumo_net."""
    place = (kind, "path")
    with foreign_files.reading(path, *place):
        try:
            yield
        except EdgeflError:
            raise
        except expat.ExpatError as error:
            raise EdgeflError(
                f"{path}:{error.lineno}: not well-formed XML ({error}); check the file", place
            ) from error
        except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
            wanted = "GeoJSON by RFC 7946" if kind == "geojson" else "a SUMO network"
            raise EdgeflError(f"{path}: is not {wanted} ({error}); check the file", place) from error


def _bytes_of_json(path: Path) -> bytes:
    """Return a file's bytes, unless it has too many values for memory.

    Raises:
        OSError: the file is too large.
    """
    content = foreign_files.whole(path, LARGEST_FILE)
    if sum(map(content.count, (b"[", b"{", b",", b":"))) > MOST_VALUES:
        raise OSError(f"holds more than {MOST_VALUES:,} values")
    return content


def _named(path: Path, document: Any, feature: str | None) -> list[Mapping[str, Any]]:
    """Return the features of a document, or those with a name.

    Raises:
        EdgeflError: no feature has the name; lists known names.
    """
    features = list(_features(document))
    if feature is None:
        return features
    named = [_names(one) for one in features]
    wanted = [one for one, names in zip(features, named, strict=True) if feature in names]
    if not wanted:
        known = sorted({name for names in named for name in names})[:10]
        raise EdgeflError(
            f"{path}: has no feature {quoted(feature)}; known names: {', '.join(map(quoted, known)) or 'none'}",
            ("geojson", "feature"),
        )
    return wanted


def _features(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if document["type"] == "FeatureCollection":
        yield from document["features"]
    elif document["type"] == "Feature":
        yield document
    else:
        yield {"geometry": document}


def _names(feature: Mapping[str, Any]) -> set[str]:
    properties = feature.get("properties") or {}
    return {str(name) for name in (feature.get("id"), properties.get("name")) if name is not None}


def _geometries(geometry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the geometries of a collection, or a single geometry itself."""
    if geometry.get("type") == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _geometries(one)
    else:
        yield geometry


def _within(coordinates: Sequence[Any], depth: int) -> Iterator[Sequence[Any]]:
    """Yield the lists at a given depth within nested lists."""
    if depth == 0:
        yield coordinates
    else:
        for part in coordinates:
            yield from _within(part, depth - 1)


def _degrees(value: Any) -> float:
    """Return a coordinate as a number.

    Raises:
        ValueError: it is not a finite number.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{quoted(value)} is not a coordinate")
    return float(value)


def _shape(text: str) -> list[Pair]:
    """Read the corners of an edge without its ends, which are junctions."""
    corners = [_pair(*corner.split(",")[:2]) for corner in text.split()]
    return corners[1:-1]


def _pair(x: str, y: str) -> Pair:
    pair = float(x), float(y)
    if not math.isfinite(sum(pair)):
        raise ValueError(f"{x}, {y} is not a finite position")
    return pair
