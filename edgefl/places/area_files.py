"""Reading areas from map files: polygons of GeoJSON, and the boundary of a SUMO network."""

import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers import expat

from edgefl.config import foreign_files, scenario_files
from edgefl.errors import EdgeflError, quoted

LARGEST_FILE = 100_000_000  # bytes, unpacked
MOST_VALUES = 8_000_000  # lists, numbers and keys of a GeoJSON file: 100 bytes each in memory
Ring = list[tuple[float, float]]
Pair = tuple[float, float]


def geojson_rings(path: Path, feature: str | None) -> list[Ring]:
    """Read the rings of polygons, in degrees: outlines and holes alike.

    Args:
        path: a FeatureCollection, a Feature or a geometry.
        feature: `id` of the features, or `name` among their properties; None: all polygons.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    with reading(path, "geojson"):
        features = features_of(path, json.loads(bytes_of_json(path)), feature)
        rings = [
            [(degrees(corner[0]), degrees(corner[1])) for corner in ring]
            for one in features
            for polygon in _polygons(one.get("geometry") or {})
            for ring in polygon
        ]
    if not rings:
        raise EdgeflError(f"{path}: no polygon in it; an area needs one at least", ("geojson", "path"))
    return rings


def sumo_boundary(path: Path) -> tuple[Pair, Pair]:
    """Read the lower left and the upper right corner of a network, m: `convBoundary` of its `<location>`.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    boundaries: list[str | None] = []

    def begin(name: str, attributes: Mapping[str, str]) -> None:
        if name == "location":
            boundaries.append(attributes.get("convBoundary"))

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    with reading(path, "sumo_net"):
        with foreign_files.opened(path) as file:
            for _ in foreign_files.parse_xml(parser, file):
                if boundaries or file.tell() > LARGEST_FILE:
                    break
        if not boundaries or boundaries[0] is None:
            raise EdgeflError(
                f"{path}: no <location convBoundary=...> in it; give a network of netconvert or netgenerate",
                ("sumo_net", "path"),
            )
        x0, y0, x1, y1 = (float(text) for text in boundaries[0].split(","))
        if not (math.isfinite(x0 + y0 + x1 + y1) and x0 < x1 and y0 < y1):
            raise EdgeflError(f"{path}: convBoundary {boundaries[0]} has no area", ("sumo_net", "path"))
    return (x0, y0), (x1, y1)


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Say of which file an error is, and what to do; kind: the key that names it, geojson or sumo_net."""
    place = (kind, "path")
    try:
        yield
    except FileNotFoundError as error:
        raise EdgeflError(
            f"{path}: no such file in {Path.cwd()}; {scenario_files.WHERE}",
            place,
        ) from error
    except EdgeflError:
        raise
    except expat.ExpatError as error:
        raise EdgeflError(
            f"{path}:{error.lineno}: not well-formed XML ({error}); check the file", place
        ) from error
    except (OSError, EOFError, zlib.error, RecursionError) as error:
        raise EdgeflError(f"{path}: cannot be read ({error}); check the file", place) from error
    except (ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        wanted = "GeoJSON as RFC 7946 has it" if kind == "geojson" else "a SUMO network"
        raise EdgeflError(f"{path}: is not {wanted} ({error}); check the file", place) from error


def bytes_of_json(path: Path) -> bytes:
    """Return a file's bytes, unless it holds more values than memory should.

    Raises:
        OSError: it is too large.
    """
    content = foreign_files.whole(path, LARGEST_FILE)
    if sum(map(content.count, (b"[", b"{", b",", b":"))) > MOST_VALUES:
        raise OSError(f"holds more than {MOST_VALUES:,} values")
    return content


def features_of(path: Path, document: Any, feature: str | None) -> list[Mapping[str, Any]]:
    """Return the features of a document, or those of a name.

    Raises:
        EdgeflError: none has the name; says which there are.
    """
    features = list(_features(document))
    if feature is None:
        return features
    named = [_names(one) for one in features]
    wanted = [one for one, names in zip(features, named, strict=True) if feature in names]
    if not wanted:
        known = sorted({name for names in named for name in names})[:10]
        raise EdgeflError(
            f"{path}: no feature {quoted(feature)}; named are {', '.join(map(quoted, known)) or 'none'}",
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


def _polygons(geometry: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """Yield the polygons of a geometry, each a list of rings; lines and points are left out."""
    kind = geometry.get("type")
    if kind == "Polygon":
        yield geometry["coordinates"]
    elif kind == "MultiPolygon":
        yield from geometry["coordinates"]
    elif kind == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _polygons(one)


def degrees(value: Any) -> float:
    """Return a coordinate as a number.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{quoted(value)} is no coordinate")
    return float(value)
