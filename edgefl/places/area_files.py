"""Reading areas from map files: polygons of GeoJSON, and the boundary of a SUMO network."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.places.map_files import Pair, geojson_lines, reading, sumo_elements


def geojson_rings(path: Path, feature: str | None) -> list[list[Pair]]:
    """Read the rings of polygons, in degrees: outlines and holes alike.

    Args:
        path: a FeatureCollection, a Feature or a geometry.
        feature: `id` of the features, or `name` among their properties; None: all polygons.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    rings = geojson_lines(path, feature, _rings)
    if not rings:
        raise EdgeflError(f"{path}: no polygon in it; an area needs one at least", ("geojson", "path"))
    return rings


def sumo_boundary(path: Path) -> tuple[Pair, Pair]:
    """Read the lower left and the upper right corner of a network, m: `convBoundary` of its `<location>`.

    Raises:
        EdgeflError: names the file and the remedy.
    """
    with reading(path, "sumo_net"):
        locations = (each for name, each in sumo_elements(path) if name == "location")
        boundary = next(locations, {}).get("convBoundary")
        if boundary is None:
            raise EdgeflError(
                f"{path}: no <location convBoundary=...> in it; give a network of netconvert or netgenerate",
                ("sumo_net", "path"),
            )
        x0, y0, x1, y1 = (float(text) for text in boundary.split(","))
        if not (math.isfinite(x0 + y0 + x1 + y1) and x0 < x1 and y0 < y1):
            raise EdgeflError(f"{path}: convBoundary {boundary} has no area", ("sumo_net", "path"))
    return (x0, y0), (x1, y1)


def _rings(geometry: Mapping[str, Any]) -> Iterator[Sequence[Any]]:
    """Yield the rings of a geometry's polygons; lines and points are left out."""
    if geometry.get("type") == "Polygon":
        yield from geometry["coordinates"]
    elif geometry.get("type") == "MultiPolygon":
        for polygon in geometry["coordinates"]:
            yield from polygon
