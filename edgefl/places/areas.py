"""Named areas where people live, work and meet: discs, rectangles, polygons, or shapes from a map file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Protocol, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.channel.geometry import on_disc
from edgefl.config.strict import Strict, one_of
from edgefl.errors import EdgeflError, refused
from edgefl.places.map_files import POLYGONS, geojson_lines, sumo_boundary
from edgefl.places.plane import LocalPlane
from edgefl.places.polygons import trapezoids

if TYPE_CHECKING:
    from edgefl.places.street_map import StreetMap

Metres = Annotated[float, Field(ge=-1e6, le=1e6)]
Point = tuple[Metres, Metres]


class _Region(Protocol):
    """A part of the plane."""

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        """Map uniform numbers [3, n] in (0, 1) to points [2, n] uniform in area."""


def points_in(regions: Sequence[_Region], which: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Map uniform numbers [3, n] in (0, 1) to points [2, n] uniform in the regions numbered `which` [n]."""
    points_m = np.empty((2, len(which)))
    for number in np.unique(which).tolist():
        there = which == number
        points_m[:, there] = regions[number].points_m(uniform[:, there])
    return points_m


@dataclass(frozen=True)
class Places:
    """The map of a scenario's world.

    areas: by name. plane: local plane around the place on Earth of [0, 0], or None if it is not given.
    streets: map of the streets, or None. notes: what a reader of files leaves out or repairs; the run shows it.
    """

    areas: Mapping[str, _Region] = field(default_factory=dict)
    plane: LocalPlane | None = None
    streets: "StreetMap | None" = None
    notes: list[str] = field(default_factory=list)

    def spots_m(self, shares: str | Mapping[str, float], uniform: np.ndarray) -> np.ndarray:
        """Map uniform numbers [4, n] to spots [2, n] in an area, or in several by their shares."""
        shares = {shares: 1.0} if isinstance(shares, str) else shares
        area = (uniform[0][:, None] >= np.cumsum(list(shares.values()))[:-1]).sum(axis=1)
        return points_in([self.areas[name] for name in shares], area, uniform[1:])

    def on_earth(self) -> LocalPlane:
        """Return the local plane.

        Raises:
            EdgeflError: the scenario does not give the origin's place on Earth.
        """
        if self.plane is None:
            raise EdgeflError(
                "longitudes and latitudes need the place on Earth of [0, 0] m: set "
                "origin_lon_lat: [LON, LAT], in degrees"
            )
        return self.plane


class Disc(Strict):
    """A disc around a point."""

    centre_m: Point = Field(description="[x, y] of the centre")
    radius_m: float = Field(gt=0, le=1e6, description="radius")

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        return np.array([self.centre_m]).T + on_disc(uniform[:2], self.radius_m)


class Rectangle(Strict):
    """A rectangle parallel to the axes."""

    from_m: Point = Field(description="[x, y] of a corner")
    to_m: Point = Field(description="[x, y] of the opposite corner")

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        if self.from_m[0] == self.to_m[0] or self.from_m[1] == self.to_m[1]:
            raise ValueError(
                f"from_m {self.from_m} and to_m {self.to_m} must differ in x and y to span a rectangle"
            )
        return self

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        begin, end = np.array([self.from_m]).T, np.array([self.to_m]).T
        return begin + uniform[:2] * (end - begin)


class Polygon(Strict):
    """Corners in order, in either direction; the last one connects to the first."""

    points_m: tuple[Point, ...] = Field(description="[x, y] of each corner, at least three")

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        trapezoids([self.points_m])
        return self


class GeoJson(Strict):
    """Polygons of a GeoJSON file (RFC 7946), in degrees; they need the scenario's origin_lon_lat."""

    path: Path = Field(description="the file, relative to the scenario's file")
    feature: str | None = Field(
        None, description="features with this `id`, or `name` among their properties; null: all polygons"
    )


class SumoNet(Strict):
    """A SUMO network in its own coordinates; as an area, the rectangle around all its streets."""

    path: Path = Field(description="the file, .net.xml or .net.xml.gz, relative to the scenario's file")
    origin_m: Point = Field((0.0, 0.0), description="the scenario's [0, 0] in the network's coordinates")


class Area(Strict):
    """One area, with exactly one of these shapes."""

    disc: Disc | None = Field(None, description="{centre_m, radius_m}")
    rectangle: Rectangle | None = Field(None, description="{from_m, to_m}")
    polygon: Polygon | None = Field(None, description="{points_m}")
    geojson: GeoJson | None = Field(None, description="{path, feature}: polygons of a file, in degrees")
    sumo_net: SumoNet | None = Field(None, description="{path, origin_m}: the area of a SUMO network")

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        return one_of(self, "shape")

    def region(self, places: Places) -> _Region:
        """Return the region; reads map files.

        Raises:
            EdgeflError: a file cannot be read or has no such area; names the remedy.
        """
        if self.polygon is not None:
            return trapezoids([self.polygon.points_m])
        if self.geojson is not None:
            plane = places.on_earth()
            nothing = "has no polygon; an area needs at least one"
            rings_deg = geojson_lines(self.geojson.path, self.geojson.feature, POLYGONS, nothing)
            with refused("geojson", "path"):
                return trapezoids([plane.to_m(ring) for ring in rings_deg])
        if self.sumo_net is not None:
            low_m, high_m = sumo_boundary(self.sumo_net.path)
            x, y = self.sumo_net.origin_m
            return Rectangle(from_m=(low_m[0] - x, low_m[1] - y), to_m=(high_m[0] - x, high_m[1] - y))
        region = self.disc or self.rectangle
        assert region is not None  # the schema requires one of them
        return region


class _MapSource(Protocol):
    """Source of a scenario's streets."""

    def street_map(self, places: Places) -> "StreetMap":
        """Return the map; reads map files."""


def places(
    areas: Mapping[str, Area], origin_lon_lat: tuple[float, float] | None, streets: _MapSource | None = None
) -> Places:
    """Return the map of a scenario: the regions of its areas, and its streets.

    Raises:
        EdgeflError: one of them is invalid; names its place in the scenario.
    """
    earth = Places({}, LocalPlane(*origin_lon_lat) if origin_lon_lat else None)
    regions: dict[str, _Region] = {}
    for name, area in areas.items():
        try:
            regions[name] = area.region(earth)
        except EdgeflError as error:
            raise EdgeflError(str(error), ("areas", name, *error.place)) from error
    if streets is None:
        return Places(regions, earth.plane)
    try:
        return Places(regions, earth.plane, streets.street_map(earth))
    except EdgeflError as error:
        raise EdgeflError(str(error), ("streets", *error.place)) from error
