"""Read the shapes of selected features of GeoJSON map files, in degrees."""

import json
import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field, field_validator

from edgefl.config import foreign_files
from edgefl.config.strict import Strict
from edgefl.errors import EdgeflError, clipped, quoted

LARGEST_FILE = 100_000_000  # bytes, unpacked
MOST_VALUES = 8_000_000  # maximum number of lists, numbers and keys in a file; each takes 100 bytes of memory
MOST_NAMES = 10  # maximum number of names in an error
Pair = tuple[float, float]
Pairs = list[tuple[float, float]]
# WGS 84, and ETRS89, which is less than a metre from it (EPSG Geodetic Parameter Dataset, operation 1149: 1 m)
DEGREES = re.compile(r"(CRS:?84h?|EPSG:(.*:)?(4326|4979|4258))$", re.IGNORECASE)
EXPORT = "export the file in WGS 84 (EPSG:4326)"
# type of geometry -> number of lists around a shape in its `coordinates`: a point, a line, or a polygon's rings
POINTS = {"Point": 0, "MultiPoint": 1}
LINES = {"LineString": 0, "MultiLineString": 1}
POLYGONS = {"Polygon": 0, "MultiPolygon": 1}
OTHERS = {"TopoJSON": "Topology", "JSON of ArcGIS": "esriGeometry"}


@dataclass(frozen=True)
class _Shape:
    """A polygon as a list of rings, or a line or point as a single ring, with its feature's number and properties.

    rings: the corners of each ring, [(longitude, latitude), ...].
    """

    rings: list[list[Pair]]
    properties: Mapping[str, Any]
    feature: int


class GeoJson(Strict):
    """Features of a GeoJSON file (RFC 7946); requires the scenario's origin_lon_lat.

    Coordinates are in degrees, or in the system that the file's member `crs` names (with `edgefl-cosim[maps]`).
    """

    path: Path = Field(description="path of the file, relative to the scenario's file")
    feature: str | dict[str, str] | None = Field(
        None,
        description="features to read. Text: their `id` or `name` or, if neither matches, any property's value;"
        " {GEN: Mitte}: features whose property GEN is Mitte (dots for nested properties); null: all features",
    )

    @field_validator("feature", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        values = list(value.values()) if isinstance(value, dict) else [] if value is None else [value]
        if any(isinstance(each, bool) or not isinstance(each, str | int) for each in values):
            raise ValueError(f"must be a name, or {{property: name or whole number}}, got {quoted(value)}")
        if isinstance(value, dict):
            return {key: str(each) for key, each in value.items()}
        return value if value is None else str(value)

    @property
    def whole(self) -> "GeoJson":
        """The same file with all of its features; their middle is the origin that an error proposes."""
        return self.model_copy(update={"feature": None})


def shapes(source: GeoJson, kinds: Mapping[str, int], nothing: str) -> list[_Shape]:
    """Read the polygons, lines or points of a file, in degrees.

    Args:
        source: a FeatureCollection, a Feature or a geometry.
        kinds: the kinds of geometries to read, POLYGONS, LINES or POINTS; all other geometries are left out.
        nothing: the remedy that an error names if the file has no geometry of these kinds.
    """
    path, place = source.path, ("geojson", "path")
    with foreign_files.reading(path, *place):
        content = _content(path)
        try:
            document = json.loads(content)
            convert = _degrees_of(document.get("crs"))
            features = [*_features(document)]
            wanted = source.feature
            chosen = [*range(len(features))] if wanted is None else _chosen(features, wanted)
        except EdgeflError as error:
            raise EdgeflError(f"{path}: {error}", error.place or place) from error
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise EdgeflError(f"{path}: {_unreadable(content, error)}", place) from error
        read: list[_Shape] = []
        other = Counter[str]()
        for number in chosen:
            try:
                for rings in _of_feature(features[number], kinds, convert, other):
                    read.append(_Shape(rings, _properties(features[number]), number + 1))
            except EdgeflError as error:
                raise EdgeflError(f"{path}: feature {number + 1}: {error}", place) from error
            except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError) as error:
                what = f"feature {number + 1} is not GeoJSON by RFC 7946 ({_reason(error)})"
                raise EdgeflError(f"{path}: {what}; correct or remove it", place) from error
    if not read:
        holds = ", ".join(f"{many:,} {clipped(kind)}" for kind, many in other.most_common(3))
        raise EdgeflError(f"{path}: holds {holds or 'no geometry'}, but {nothing}", place)
    return read


def _of_feature(
    feature: Mapping[str, Any],
    kinds: Mapping[str, int],
    convert: Callable[[list[Pair]], list[Pair]],
    other: Counter[str],
) -> Iterator[list[list[Pair]]]:
    """Yield the rings of each shape of a feature; count its geometries of other kinds."""
    for geometry in _geometries(feature.get("geometry") or {}):
        kind = str(geometry.get("type"))
        if kind not in kinds:
            other.update([kind] if "type" in geometry else [])
            continue
        for part in _within(geometry["coordinates"], kinds[kind]):
            rings = [part] if kinds is LINES else [[part]] if kinds is POINTS else part
            degrees = [convert([_pair(corner) for corner in ring]) if ring else [] for ring in rings]
            if degrees:
                yield degrees


def _properties(feature: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = feature.get("properties")
    if properties is not None and not isinstance(properties, Mapping):
        raise TypeError(f"its properties are {quoted(properties)}")
    return properties or {}


def _content(path: Path) -> bytes:
    """Return a file's bytes, unless it has too many values for memory.

    Raises:
        OSError: the file is too large.
    """
    content = foreign_files.whole(path, LARGEST_FILE)
    if sum(map(content.count, (b"[", b"{", b",", b":"))) > MOST_VALUES:
        raise OSError(f"holds more than {MOST_VALUES:,} values")
    return content


def _unreadable(content: bytes, error: Exception) -> str:
    """Describe an unreadable file: its kind, if it is not GeoJSON, and the remedy."""
    begin = content[:1000].lstrip(b"\xef\xbb\xbf \t\r\n")
    if begin.startswith(b"<"):
        return (
            "is XML; give a SUMO network as sumo_net: {path}, and convert OpenStreetMap's XML with osmtogeojson,"
            " or with netconvert --osm-files"
        )
    for name, sign in OTHERS.items():
        if sign.encode() in content[:10_000]:
            return f"is {name}; export it as GeoJSON in WGS 84 (EPSG:4326)"
    return f"is not GeoJSON by RFC 7946 ({_reason(error)}); check the file"


def _reason(error: Exception) -> str:
    """Describe why values could not be read, without Python terms."""
    if isinstance(error, KeyError):
        return f"{error} is missing"
    return str(error) if isinstance(error, ValueError) else "its values are nested in an unexpected way"


def _features(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if document["type"] == "FeatureCollection":
        yield from document["features"]
    elif document["type"] == "Feature":
        yield document
    elif document["type"] in {*LINES, *POLYGONS, *POINTS, "GeometryCollection"}:
        yield {"geometry": document}
    else:
        raise ValueError(f"its type is {quoted(document['type'])}")


def _chosen(features: Sequence[Mapping[str, Any]], wanted: str | Mapping[str, Any]) -> list[int]:
    """Return the numbers of a file's features with given properties, or with a given name.

    A name is looked up in `id` and in the property `name`, and in all other properties only if it is not found there.

    Raises:
        EdgeflError: no feature matches, or several do; the message names the file's properties.
    """
    place = ("geojson", "feature")
    values = [dict(_values(one)) for one in features]
    if isinstance(wanted, Mapping):
        texts = {key: _text(value) for key, value in wanted.items()}
        chosen = [n for n, own in enumerate(values) if texts.items() <= own.items()]
        if not chosen:
            shown = ", ".join(f"{key}: {text}" for key, text in texts.items())
            raise EdgeflError(f"no feature has {{{clipped(shown)}}}; {_known(values, texts)}", place)
        return chosen
    having: dict[str, list[int]] = defaultdict(list)
    for number, own in enumerate(values):
        for key, text in own.items():
            if text == _text(wanted):
                having[key].append(number)
    named = sorted({*having.get("id", ()), *having.get("name", ())})
    found = [named] if named else list(having.values())
    if not found:
        raise EdgeflError(f"has no feature {quoted(wanted)}; {_known(values, ('id', 'name'))}", place)
    if any(each != found[0] for each in found):
        several = ", ".join(f"{key} of {len(each):,}" for key, each in having.items())
        raise EdgeflError(
            f"{quoted(wanted)} names different features, as it is the {several}: write feature:"
            f" {{{next(iter(having))}: {wanted}}}",
            place,
        )
    return found[0]


def _known(values: Sequence[Mapping[str, str]], keys: Collection[str]) -> str:
    """Return the values of some properties in a file, or the names of its properties if it has no values."""
    known = sorted({own[key] for own in values for key in keys if key in own})
    if known:
        return f"known names: {', '.join(map(quoted, known[:MOST_NAMES]))}"
    names = dict.fromkeys(key for own in values for key in own)
    properties = [clipped(key) for key in names][:MOST_NAMES]
    return f"the file names no feature; properties of its features: {', '.join(properties) or 'none'}"


def _values(feature: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield `id` and all properties of a feature as text, nested properties with dots in their names."""
    yield from _flat(_properties(feature), "")
    if feature.get("id") is not None:
        yield "id", _text(feature["id"])


def _flat(tree: Mapping[str, Any], above: str) -> Iterator[tuple[str, str]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{above}{key}.")
        elif isinstance(value, str | int | float):
            yield f"{above}{key}", _text(value)


def _text(value: Any) -> str:
    return unicodedata.normalize("NFC", str(value))


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


def _pair(corner: Sequence[Any]) -> Pair:
    """Return the first two coordinates of a corner.

    Raises:
        ValueError: one of the coordinates is not a finite number.
    """
    for value in corner[:2]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{quoted(value)} is not a coordinate")
    return float(corner[0]), float(corner[1])


def _degrees_of(crs: Any) -> Callable[[Pairs], Pairs]:
    """Return a function that converts the coordinates of a GeoJSON file to longitudes and latitudes.

    Args:
        crs: the file's member `crs`, or None if coordinates are degrees, as in RFC 7946.

    Raises:
        EdgeflError: the system is unknown or needs pyproj, or, in the returned function, coordinates are invalid.
    """
    name = _name_of(crs)
    if name is None or DEGREES.search(name):
        return partial(_checked_degrees, name=name)
    try:
        import pyproj
        from pyproj.exceptions import ProjError
    except ImportError as error:
        raise EdgeflError(
            f"its crs is {quoted(name)}, not degrees: pip install 'edgefl-cosim[maps]', which reads it, or {EXPORT}"
        ) from error
    try:
        system = pyproj.CRS(name)
        to_degrees = pyproj.Transformer.from_crs(system, "EPSG:4326", always_xy=True)
    except ProjError as error:
        raise EdgeflError(f"its crs {quoted(name)} is unknown ({clipped(str(error))}); {EXPORT}") from error

    def convert(pairs: Pairs) -> Pairs:
        if system.is_geographic:
            _checked_degrees(pairs, name)
        elif all(abs(x) <= 180.0 and abs(y) <= 180.0 for x, y in pairs):
            # in metres, these would lie within 255 m of the point from which a projection counts
            x, y = pairs[0]
            raise EdgeflError(
                f"({x:g}, {y:g}) looks like degrees, but the file's member crs {quoted(name)} is not in degrees:"
                f" remove crs, or {EXPORT}"
            )
        lon_deg, lat_deg = to_degrees.transform(*np.array(pairs).T)
        if not np.isfinite([lon_deg, lat_deg]).all():
            raise EdgeflError(f"{pairs[0]} is outside the file's crs {quoted(name)}; {EXPORT}")
        return list(zip(lon_deg.tolist(), lat_deg.tolist(), strict=True))

    return convert


def _name_of(crs: Any) -> str | None:
    """Return the name of a coordinate reference system in GeoJSON 2008, section 3."""
    if crs is None:
        return None
    properties = crs.get("properties") if isinstance(crs, Mapping) else None
    if isinstance(properties, Mapping):
        if crs.get("type") == "name" and isinstance(properties.get("name"), str):
            return str(properties["name"])
        if isinstance(properties.get("code"), str | int):
            return f"EPSG:{properties['code']}"
    raise EdgeflError(f"its crs {quoted(crs)} names no coordinate reference system; {EXPORT}")


def _checked_degrees(pairs: Pairs, name: str | None) -> Pairs:
    """Return positions in degrees, after checking that each is a longitude followed by a latitude.

    Args:
        name: the coordinate reference system that the file names, if any; it is in degrees.
    """
    for x, y in pairs:
        if abs(x) > 360.0 or abs(y) > 180.0:
            says = f"the file has no member crs that names its projection; {EXPORT}"
            if name is not None:
                says = f"the file's member crs {quoted(name)} is in degrees: name the projection there, or {EXPORT}"
            raise EdgeflError(f"({x:g}, {y:g}) is not a longitude and latitude, and {says}")
        if abs(y) > 90.0:
            raise EdgeflError(f"({x:g}, {y:g}) has the latitude first; write the longitude first")
    return pairs
