"""Reading map files: the features of a GeoJSON file, and the elements of a SUMO network."""

import json
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.parsers import expat

from edgefl.config import foreign_files, scenario_files
from edgefl.errors import EdgeflError, quoted

LARGEST_FILE = 100_000_000  # bytes, unpacked
MOST_VALUES = 8_000_000  # lists, numbers and keys of a GeoJSON file: 100 bytes each in memory
Pair = tuple[float, float]


def geojson_lines(
    path: Path, feature: str | None, lines_of: Callable[[Mapping[str, Any]], Iterator[Sequence[Any]]]
) -> list[list[Pair]]:
    """Read lines, in degrees.

    Args:
        path: a FeatureCollection, a Feature or a geometry.
        feature: `id` of the features, or `name` among their properties; None: all.
        lines_of: yields the lines of a geometry that has no collection in it, each a list of positions.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    with reading(path, "geojson"):
        features = _named(path, json.loads(_bytes_of_json(path)), feature)
        return [
            [(_degrees(corner[0]), _degrees(corner[1])) for corner in line]
            for one in features
            for geometry in _geometries(one.get("geometry") or {})
            for line in lines_of(geometry)
        ]


def sumo_elements(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
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
                raise too_large(path, f"{LARGEST_FILE // 1_000_000} MB, unpacked")


def too_large(path: Path, most: str) -> EdgeflError:
    """Return the error about a network of more than so much."""
    return EdgeflError(
        f"{path}: more than {most}; cut a smaller network out with netconvert --keep-edges.in-boundary",
        ("sumo_net", "path"),
    )


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


def _bytes_of_json(path: Path) -> bytes:
    """Return a file's bytes, unless it holds more values than memory should.

    Raises:
        OSError: it is too large.
    """
    content = foreign_files.whole(path, LARGEST_FILE)
    if sum(map(content.count, (b"[", b"{", b",", b":"))) > MOST_VALUES:
        raise OSError(f"holds more than {MOST_VALUES:,} values")
    return content


def _named(path: Path, document: Any, feature: str | None) -> list[Mapping[str, Any]]:
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


def _geometries(geometry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the geometries of a collection; one that is none is all of itself."""
    if geometry.get("type") == "GeometryCollection":
        for one in geometry["geometries"]:
            yield from _geometries(one)
    else:
        yield geometry


def _degrees(value: Any) -> float:
    """Return a coordinate as a number.

    Raises:
        ValueError: it is none.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise ValueError(f"{quoted(value)} is no coordinate")
    return float(value)
