"""Convert the coordinates of a map file to degrees, by the coordinate reference system that the file names."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from edgefl.errors import EdgeflError, clipped, quoted

Pairs = list[tuple[float, float]]
# WGS 84, and ETRS89, which is less than a metre from it (EPSG Geodetic Parameter Dataset, operation 1149: 1 m)
DEGREES = re.compile(r"(CRS:?84h?|EPSG:(.*:)?(4326|4979|4258))$", re.IGNORECASE)
EXPORT = "export the file in WGS 84 (EPSG:4326)"


def degrees_of(crs: Any) -> Callable[[Pairs], Pairs]:
    """Return a function from the coordinates of a GeoJSON file to longitudes and latitudes.

    Args:
        crs: member of the file; None, as RFC 7946 has it, for degrees.

    Raises:
        EdgeflError: the system is unknown, or needs pyproj; and from the function, a place is not on Earth.
    """
    name = _name(crs)
    if name is None or DEGREES.search(name):
        return _checked
    try:
        import pyproj
        from pyproj.exceptions import ProjError
    except ImportError as error:
        raise EdgeflError(
            f"its crs is {quoted(name)}, not degrees: pip install 'edgefl-cosim[maps]', which reads it, or {EXPORT}"
        ) from error
    try:
        to_degrees = pyproj.Transformer.from_crs(name, "EPSG:4326", always_xy=True)
    except ProjError as error:
        raise EdgeflError(f"its crs {quoted(name)} is unknown ({clipped(str(error))}); {EXPORT}") from error

    def convert(pairs: Pairs) -> Pairs:
        lon_deg, lat_deg = to_degrees.transform(*np.array(pairs).T)
        if not np.isfinite([lon_deg, lat_deg]).all():
            raise EdgeflError(f"{pairs[0]} is outside its crs {quoted(name)}; {EXPORT}")
        return list(zip(lon_deg.tolist(), lat_deg.tolist(), strict=True))

    return convert


def _name(crs: Any) -> str | None:
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


def _checked(pairs: Pairs) -> Pairs:
    """Return places in degrees."""
    for x, y in pairs:
        if abs(x) > 360.0 or abs(y) > 180.0:
            raise EdgeflError(
                f"({x:g}, {y:g}) is no longitude and latitude, and the file has no member crs that names its"
                f" projection; {EXPORT}"
            )
        if abs(y) > 90.0:
            raise EdgeflError(f"({x:g}, {y:g}) has the latitude first; write the longitude first")
    return pairs
