"""Areas by name: where people live, work and meet; discs, rectangles, polygons, or shapes from a map file."""

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
        """Return [2, n] points uniform in area, a function of [3, n] uniform numbers in (0, 1)."""


def points_in(regions: Sequence[_Region], which: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Return [2, n] points uniform in regions number [n] which, a function of [3, n] uniform numbers in (0, 1)."""
    points_m = np.empty((2, len(which)))
    for number in np.unique(which).tolist():
        there = which == number
        points_m[:, there] = regions[number].points_m(uniform[:, there])
    return points_m


@dataclass(frozen=True)
class Places:
    """What a scenario's world knows of the map.

    areas: by name. plane: around the place on Earth where [0, 0] lies; None: nobody has said where.
    streets: along which people go; None: there are none.
    """

    areas: Mapping[str, _Region] = field(default_factory=dict)
    plane: LocalPlane | None = None
    streets: "StreetMap | None" = None

    def spots_m(self, shares: str | Mapping[str, float], uniform: np.ndarray) -> np.ndarray:
        """Return [2, n] spots in an area, or in several by their shares, a function of [4, n] uniform numbers."""
        shares = {shares: 1.0} if isinstance(shares, str) else shares
        area = (uniform[0][:, None] >= np.cumsum(list(shares.values()))[:-1]).sum(axis=1)
        return points_in([self.areas[name] for name in shares], area, uniform[1:])

    def on_earth(self) -> LocalPlane:
        """Return the plane.

        Raises:
            EdgeflError: nobody has said where the origin lies.
        """
        if self.plane is None:
            raise EdgeflError(
                "longitudes and latitudes need the place on Earth where [0, 0] m lies: set "
                "origin_lon_lat: [LON, LAT], in degrees"
            )
        return self.plane


class Disc(Strict):
    """All points within a distance."""

    centre_m: Point = Field(description="[x, y] of the middle, m")
    radius_m: float = Field(gt=0, le=1e6, description="radius, m")

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        return np.array([self.centre_m]).T + on_disc(uniform[:2], self.radius_m)


class Rectangle(Strict):
    """Parallel to the axes."""

    from_m: Point = Field(description="[x, y] of a corner, m")
    to_m: Point = Field(description="[x, y] of the opposite corner, m")

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        if self.from_m[0] == self.to_m[0] or self.from_m[1] == self.to_m[1]:
            raise ValueError(
                f"from_m {self.from_m} and to_m {self.to_m} are opposite corners of no rectangle"
            )
        return self

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        begin, end = np.array([self.from_m]).T, np.array([self.to_m]).T
        return begin + uniform[:2] * (end - begin)


class Polygon(Strict):
    """Corners in order, either way round; the last one is joined to the first."""

    points_m: tuple[Point, ...] = Field(description="[x, y] of each corner, m, at least three")

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        trapezoids([self.points_m])
        return self


class GeoJson(Strict):
    """Polygons of a GeoJSON file (RFC 7946), in degrees; they need the scenario's origin_lon_lat."""

    path: Path = Field(description="the file; relative to the scenario's file")
    feature: str | None = Field(
        None, description="`id` of the features, or `name` among their properties; none: all polygons"
    )


class SumoNet(Strict):
    """The area of a SUMO network: the rectangle around all its streets, in its own metres."""

    path: Path = Field(description="the file, .net.xml or .net.xml.gz; relative to the scenario's file")
    origin_m: Point = Field((0.0, 0.0), description="[x, y] of [0, 0] in the network's coordinates, m")


class Area(Strict):
    """One area: exactly one of these shapes."""

    disc: Disc | None = Field(None, description="{centre_m, radius_m}")
    rectangle: Rectangle | None = Field(None, description="{from_m, to_m}")
    polygon: Polygon | None = Field(None, description="{points_m}")
    geojson: GeoJson | None = Field(None, description="{path, feature}: polygons of a file, in degrees")
    sumo_net: SumoNet | None = Field(None, description="{path, origin_m}: the area of a SUMO network")

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        return one_of(self, "shape")

    def region(self, places: Places) -> _Region:
        """Make the region; files are read.

        Raises:
            EdgeflError: a file cannot be read, or has no such area; names what to do.
        """
        if self.polygon is not None:
            return trapezoids([self.polygon.points_m])
        if self.geojson is not None:
            plane = places.on_earth()
            nothing = "no polygon in it; an area needs one at least"
            rings_deg = geojson_lines(self.geojson.path, self.geojson.feature, POLYGONS, nothing)
            with refused("geojson", "path"):
                return trapezoids([plane.to_m(ring) for ring in rings_deg])
        if self.sumo_net is not None:
            low_m, high_m = sumo_boundary(self.sumo_net.path)
            x, y = self.sumo_net.origin_m
            return Rectangle(from_m=(low_m[0] - x, low_m[1] - y), to_m=(high_m[0] - x, high_m[1] - y))
        region = self.disc or self.rectangle
        assert region is not None  # the schema wants one of them
        return region


class _MapSource(Protocol):
    """Where the streets of a scenario come from."""

    def street_map(self, places: Places) -> "StreetMap":
        """Make the map; files are read."""


def places(
    areas: Mapping[str, Area], origin_lon_lat: tuple[float, float] | None, streets: _MapSource | None = None
) -> Places:
    """Make the regions of all areas, and the map of the streets.

    Raises:
        EdgeflError: about one of them, with its place in the scenario.
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
