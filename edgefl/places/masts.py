"""Read masts from tables of cells, such as OpenCelliD's or an operator's, and from GeoJSON points."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
from pydantic import Field, ValidationError, model_validator

from edgefl.config import foreign_files, shipped, table_files
from edgefl.config.strict import Strict
from edgefl.errors import EdgeflError, moved, quoted
from edgefl.places.geojson_files import POINTS, GeoJson, shapes
from edgefl.places.plane import LocalPlane, middle_deg, turned_deg

NEAR_DEG = 0.7  # degrees of latitude, 78 km; farther masts are outside any world, and outside the plane
SAME_DIGITS = 5  # decimals of a degree, about 1 m; cells that agree to this precision share a mast
# values of OpenCelliD's first column, by which a file without a header is recognised, and its column names
RADIOS = ("GSM", "UMTS", "LTE", "NR", "CDMA")
OPENCELLID = (
    *("radio", "mcc", "net", "area", "cell", "unit", "lon", "lat", "range"),
    *("samples", "changeable", "created", "updated", "averageSignal"),
)
NAMES = {
    "lon": ("lon", "longitude", "lng", "long"),
    "lat": ("lat", "latitude"),
    "azimuth": ("azimuth", "azimuth_deg", "bearing"),
}
# names of columns that hold a place in a plane, in lower case
METRES = (("x", "y"), ("x_m", "y_m"), ("x_km", "y_km"), ("easting", "northing"), ("east", "north"))
ALIKE = re.compile(
    "azimut|bearing|heading|direction|orientation", re.IGNORECASE
)  # columns that may hold azimuths
PLACE = ("layout", "sites", "path")  # the scenario's key that names the file
Values = str | int | float
Row = tuple[str, Mapping[str, Any]]  # where the row is in the file, for errors, and its values by column


class SitesFile(Strict):
    """Sites read from a file, in degrees; requires the scenario's origin_lon_lat.

    Each row of a table is a radio cell, as is each point of a GeoJSON file. Cells within about a metre of one another
    form one mast. With a column of azimuths (degrees clockwise from north), each azimuth of a mast becomes a sector;
    otherwise a mast is an ordinary site of `layout`. Additional cells of a mast or sector, such as cells on other
    carriers, are merged into the first cell. A note states the number of masts left out beyond layout.radius_m.
    """

    path: Path = Field(
        description="path of the file, relative to the scenario's file: GeoJSON points (.geojson or .json, RFC"
        " 7946), or a table (.csv, .csv.gz or .parquet) with columns of longitude and latitude; an OpenCelliD table"
        " may lack the header",
    )
    columns: dict[Literal["lon", "lat", "azimuth"], str] = Field(
        {},
        description="names of columns that are not called lon, lat and azimuth (longitude, bearing, ... work"
        " too): {lon: X, lat: Y, azimuth: direction}; in GeoJSON, name only the azimuth's property",
    )
    where: dict[str, Values | tuple[Values, ...]] = Field(
        {},
        description="rows to read, chosen by values of columns or properties, such as {radio: [LTE, NR], net: 1}",
    )

    @model_validator(mode="after")
    def _columns(self) -> Self:
        if self.points and self.columns.keys() - {"azimuth"}:
            raise ValueError("GeoJSON points already have coordinates: leave lon and lat out of columns")
        return self

    @property
    def points(self) -> bool:
        """Whether the file is GeoJSON, not a table."""
        return self.path.suffix.lower() in (".geojson", ".json")

    def masts(self, origin_lon_lat: tuple[float, float] | None, radius_m: float | None) -> "_Masts":
        """Return the masts of the file, within a radius of the origin if a radius is given."""
        path = shipped.data(self.path)
        origin = None if origin_lon_lat is None else tuple(origin_lon_lat)
        return _read(self, path, origin, radius_m, foreign_files.stamp(path, *PLACE))

    def __hash__(self) -> int:
        return hash(repr(self))  # the fields `columns` and `where` are dicts, which have no hash


@dataclass(frozen=True)
class _Masts:
    """The masts read from a file.

    sites_m: [x, y] of each mast. azimuth_deg: bearings of each mast's sectors, counter-clockwise from x; None without
    a column of azimuths. note: how many rows became masts or sectors, were joined, or were left out.
    """

    sites_m: list[list[float]]
    azimuth_deg: list[list[float]] | None
    note: str


@lru_cache(maxsize=4)
def _read(
    file: SitesFile,
    path: Path,
    origin_lon_lat: tuple[float, float] | None,
    radius_m: float | None,
    stamp: tuple[Path, int, int],
) -> _Masts:
    """Read a file of masts once for both layout and note, and again only if it changes."""
    rows = _Rows(file, path)
    with moved(("geojson", "path"), PLACE):
        for where, cells in _of_geojson(path) if file.points else _of_table(file, path):
            rows.add(where, cells)
    return rows.masts(origin_lon_lat, radius_m)


def with_masts(scenario: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a scenario's keys, with a file of sites replaced by its masts' positions and bearings."""
    layout = scenario.get("layout")
    if not (isinstance(layout, Mapping) and isinstance(layout.get("sites"), Mapping)):
        return scenario
    try:
        file = SitesFile.model_validate(layout["sites"])
    except ValidationError:
        return scenario  # the layout's own check raises the error
    origin, radius_m = scenario.get("origin_lon_lat"), layout.get("radius_m")
    masts = file.masts(
        origin if _is_place(origin) else None, radius_m if isinstance(radius_m, int | float) else None
    )
    filled = {**layout, "sites": masts.sites_m}
    if masts.azimuth_deg is not None:
        if "azimuth_deg" in layout:
            raise EdgeflError(
                "the file already gives the azimuths: leave azimuth_deg out", ("layout", "azimuth_deg")
            )
        filled["azimuth_deg"] = masts.azimuth_deg
    return {**scenario, "layout": filled}


def _is_place(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(each, int | float) and math.isfinite(each) for each in value)
    )


def _of_table(file: SitesFile, path: Path) -> Iterator[Row]:
    table = table_files.Table(path, *PLACE)
    names = table.names
    if len(names) == len(OPENCELLID) and names[0].upper() in RADIOS:
        yield f"{path}:1", dict(zip(OPENCELLID, names, strict=True))
        names = table.names = list(OPENCELLID)
    small, found = {name.lower() for name in names}, {}
    plane = next((pair for pair in METRES if small.issuperset(pair)), None)
    if plane and not file.columns and small.isdisjoint((*NAMES["lon"], *NAMES["lat"])):
        raise table.error(
            1,
            f"has columns {' and '.join(plane)}, but no longitude and latitude: write metres as layout.sites:"
            " [[x, y], ...]",
        )
    for key, usual in NAMES.items():
        given = [own for name, own in file.columns.items() if name == key]
        if given or key != "azimuth" or small & set(usual):
            found[key] = names[table.column(given or usual, exact=bool(given))]
    for name in file.where:
        table.column((name,), exact=True)
    for line, cells in table.rows:
        row = dict(zip(names, cells, strict=True))
        yield f"{path}:{line}", row | {key: row[name] for key, name in found.items()}


def _of_geojson(path: Path) -> Iterator[Row]:
    source = GeoJson(path=path, feature=None)
    for one in shapes(source, POINTS, "masts are Points, one for each cell"):
        small = {str(name).lower(): value for name, value in one.properties.items()}
        azimuths = [small[name] for name in NAMES["azimuth"] if name in small]
        usual = {"azimuth": azimuths[0]} if azimuths else {}
        lon, lat = one.rings[0][0]
        yield f"{path}: feature {one.feature}", {**usual, **one.properties, "lon": lon, "lat": lat}


class _Rows:
    """Collect the rows of a file while it is read; each row is a radio cell, and cells are grouped by mast."""

    def __init__(self, file: SitesFile, path: Path) -> None:
        self._file, self._path = file, path
        self._wanted = {
            column: set(map(str, values if isinstance(values, tuple) else (values,)))
            for column, values in file.where.items()
        }
        self._azimuths: dict[tuple[float, float], list[float]] = {}  # azimuths of each mast's sectors
        self._with_azimuths = False
        self._names: dict[str, None] = {}  # columns or properties, in order of appearance
        self._cells = self._chosen = 0

    def add(self, where: str, cells: Mapping[str, Any]) -> None:
        self._cells += 1
        if any(str(cells.get(column)).strip() not in values for column, values in self._wanted.items()):
            return
        self._chosen += 1
        self._names.update(dict.fromkeys(cells))
        lon, lat = (
            self._number(where, key, cells.get(key), most) for key, most in (("lon", 180.0), ("lat", 90.0))
        )
        bearings = self._azimuths.setdefault((round(lon, SAME_DIGITS), round(lat, SAME_DIGITS)), [])
        own = self._file.columns.get("azimuth")
        name = own if self._file.points and own else "azimuth"
        if name in cells or own is not None:
            self._with_azimuths = True
            azimuth = self._number(where, name, cells.get(name), 360.0)
            bearing = (90.0 - azimuth) % 360.0
            if bearing not in bearings:
                bearings.append(bearing)

    def masts(self, origin_lon_lat: tuple[float, float] | None, radius_m: float | None) -> _Masts:
        path = self._path
        if not self._azimuths:
            chosen = " that `where` chooses" if self._cells else ""
            raise EdgeflError(f"{path}: has no cell{chosen}; it needs at least one", PLACE)
        places_deg = np.array(list(self._azimuths))
        if origin_lon_lat is None:
            lon, lat = middle_deg(places_deg)
            raise EdgeflError(
                f"{path}: masts in degrees need a geographic origin: set origin_lon_lat, the position of [0, 0] m,"
                f" such as [{lon:g}, {lat:g}] near the masts' centre",
                ("origin_lon_lat",),
            )
        places_m = np.full(places_deg.shape, np.inf)
        east_deg = np.abs(turned_deg(places_deg[:, 0], origin_lon_lat[0]))
        near = (np.abs(places_deg[:, 1] - origin_lon_lat[1]) < NEAR_DEG) & (
            east_deg < NEAR_DEG / math.cos(math.radians(origin_lon_lat[1]))
        )
        if near.any():
            places_m[near] = LocalPlane(*origin_lon_lat).to_m(places_deg[near])
        distances_m = np.hypot(*places_m.T)
        kept = np.flatnonzero(distances_m <= (math.inf if radius_m is None else radius_m))
        if not len(kept) or not np.isfinite(distances_m[kept]).all():
            many = "none" if not len(kept) else f"{np.isfinite(distances_m).sum():,}"
            remedy = "set layout.radius_m to leave out masts beyond it, or move the origin to the masts"
            if not near.any():
                remedy = "check origin_lon_lat, and the order of longitude and latitude"
            elif radius_m is not None:
                remedy = (
                    "set layout.radius_m to more than the nearest's distance to the origin,"
                    f" {math.ceil(distances_m.min()):,} m, or move the origin to the masts"
                )
            raise EdgeflError(
                f"{path}: of {len(places_deg):,} masts {many} lie in the world around origin_lon_lat"
                f" [{origin_lon_lat[0]:g}, {origin_lon_lat[1]:g}]: {remedy}",
                PLACE,
            )
        azimuths = list(self._azimuths.values())
        return _Masts(
            places_m[kept].round(2).tolist(),
            [azimuths[at] for at in kept.tolist()] if self._with_azimuths else None,
            self._note(len(kept), sum(len(azimuths[at]) for at in kept.tolist())),
        )

    def _note(self, kept: int, sectors: int) -> str:
        def many(number: int, what: str) -> str:
            return f"{number:,} {what}{'s' * (number != 1)}"

        cells = many(self._chosen, "cell")
        if self._chosen < self._cells:
            cells = f"{self._chosen:,} of {many(self._cells, 'cell')} (chosen by `where`)"
        sectors_of = f" with {many(sectors, 'sector')}" if self._with_azimuths else ""
        beyond = len(self._azimuths) - kept
        left_out = f"; masts left out beyond layout.radius_m: {beyond:,}" if beyond else ""
        azimuths = list(chain.from_iterable(self._azimuths.values())) if self._with_azimuths else []
        if len(set(azimuths)) > 1 and max(abs(90.0 - each) for each in azimuths) <= 2 * math.pi:
            left_out += "; all azimuths lie within 6.3 degrees of north: are they in radians?"
        alike = "" if self._with_azimuths else next(filter(ALIKE.search, self._names), "")
        if alike:
            left_out += (
                f"; no azimuths are read, but {quoted(alike)} may hold them: to use it, set layout.sites.columns:"
                f" {{azimuth: {alike}}}"
            )
        places = many(len(self._azimuths), "place")
        return f"layout.sites: {self._path.name} has {cells} at {places}: {many(kept, 'site')}{sectors_of}{left_out}"

    def _number(self, where: str, key: str, value: Any, most: float) -> float:
        found = table_files.number(value)
        if found is None or abs(found) > most:
            remedy = (
                "write degrees"
                if value not in (None, "")
                else "write degrees, or leave such rows out with `where`"
            )
            raise EdgeflError(
                f"{where}: {key} is {quoted(value)}: {remedy}, at most {most:g}{table_files.decimal_comma(value)}",
                PLACE,
            )
        return found
