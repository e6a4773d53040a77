"""Named areas where people live, work and meet, as discs, rectangles, polygons, or shapes from a map file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from pydantic import Field, model_validator

from edgefl.channel.geometry import on_disc
from edgefl.config.strict import Strict, one_of
from edgefl.errors import EdgeflError, moved, refused
from edgefl.places import sumo_files
from edgefl.places.geojson_files import POLYGONS, GeoJson, shapes
from edgefl.places.plane import LocalPlane, box_middle_deg
from edgefl.places.polygons import Trapezoids, trapezoids, union

if TYPE_CHECKING:
    from edgefl.places.permissions import Mode
    from edgefl.places.street_map import StreetMap

Metres = Annotated[float, Field(ge=-1e6, le=1e6)]
Point = tuple[Metres, Metres]


class _Region(Protocol):
    """A region of the plane, in m."""

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        """Map uniform numbers [3, n] in (0, 1) to points [2, n] distributed uniformly over the region."""

    def drawn(self) -> dict[str, Any]:
        """Return the outline to draw on a map, m: `centre` and `radius`, or `points`, the rings' corners."""


class _Streets(Protocol):
    """All streets of a map."""

    def map_for(self, mode: "Mode") -> "StreetMap":
        """Return the map of the streets that are open to a mode of travel."""

    def drawn(self) -> list[list[list[float]]]:
        """Return the corners of each street, in m."""


def points_in(regions: Sequence[_Region], which: np.ndarray, uniform: np.ndarray) -> np.ndarray:
    """Map uniform numbers [3, n] in (0, 1) to points [2, n] uniform over the regions with indices `which` [n]."""
    points_m = np.empty((2, len(which)))
    for number in np.unique(which).tolist():
        there = which == number
        points_m[:, there] = regions[number].points_m(uniform[:, there])
    return points_m


@dataclass(frozen=True)
class Places:
    """The map of a scenario's world.

    areas: areas by name. plane: tangent plane at the geographic location of the origin [0, 0], or None if that
    location is unknown. streets: all streets, or None. notes: messages on omissions and repairs in map files.
    """

    areas: Mapping[str, _Region] = field(default_factory=dict)
    plane: LocalPlane | None = None
    streets: _Streets | None = None
    notes: list[str] = field(default_factory=list)
    used: set[str] = field(default_factory=set)  # contains "plane" once degrees have been converted

    def spots_m(self, shares: str | Mapping[str, float], uniform: np.ndarray) -> np.ndarray:
        """Map uniform numbers [4, n] to points [2, n] in one area, or in several areas with the given shares."""
        shares = {shares: 1.0} if isinstance(shares, str) else shares
        area = (uniform[0][:, None] >= np.cumsum(list(shares.values()))[:-1]).sum(axis=1)
        return points_in([self.areas[name] for name in shares], area, uniform[1:])

    def streets_for(self, mode: "Mode") -> "StreetMap | None":
        """Return the map of the streets that are open to a mode of travel, or None if the scenario has no streets."""
        return None if self.streets is None else self.streets.map_for(mode)

    def drawing(self) -> dict[str, Any]:
        """Return the areas and streets for a drawing of the map; empty if there are none."""
        if not self.areas and self.streets is None:
            return {}
        areas = [{"name": name, **region.drawn()} for name, region in self.areas.items()]
        return {"areas": areas, "streets": self.streets.drawn() if self.streets else []}

    def on_earth(
        self,
        path: Path,
        lines: Sequence[npt.ArrayLike],
        middle: Callable[[npt.ArrayLike], list[float]] = box_middle_deg,
    ) -> LocalPlane:
        """Return the local plane, in which a file's longitudes and latitudes become metres.

        Args:
            path: the file to convert, for errors. lines: the file's lines, each [n, 2] longitudes and latitudes.
            middle: returns the middle of places in degrees, which the error proposes.

        Raises:
            EdgeflError: the scenario lacks the origin's geographic location; the message proposes one.
        """
        if self.plane is None:
            covered = np.concatenate([np.reshape(line, (-1, 2)) for line in lines])
            raise EdgeflError(
                f"{path}: degrees need a geographic origin: set origin_lon_lat: [LON, LAT], the position of"
                f" [0, 0] m in degrees; the centre of this file is {middle(covered)}"
            )
        self.used.add("plane")
        return self.plane

    def noted(self) -> list[str]:
        """Return each note once, including one about `origin_lon_lat` if nothing has used it."""
        unused = "origin_lon_lat is not used, because nothing in this scenario is in degrees: leave it out"
        return [*dict.fromkeys(self.notes), *([unused] if self.plane and "plane" not in self.used else [])]


class Disc(Strict):
    """A disc around a point."""

    centre_m: Point = Field(description="[x, y] of the centre")
    radius_m: float = Field(gt=0, le=1e6, description="distance from the centre to the edge")

    def points_m(self, uniform: np.ndarray) -> np.ndarray:
        return np.array([self.centre_m]).T + on_disc(uniform[:2], self.radius_m)

    def drawn(self) -> dict[str, Any]:
        return {"centre": list(self.centre_m), "radius": self.radius_m}


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

    def drawn(self) -> dict[str, Any]:
        (left, low), (right, high) = self.from_m, self.to_m
        return {"points": [[[left, low], [right, low], [right, high], [left, high]]]}


class Polygon(Strict):
    """Corners in order, in either direction; the last corner connects to the first."""

    points_m: tuple[Point, ...] = Field(description="[x, y] of each corner, at least three")

    @model_validator(mode="after")
    def _has_an_area(self) -> Self:
        trapezoids([[self.points_m]])
        return self


class SumoNet(Strict):
    """A SUMO network in its own coordinates. Its area is the bounding box of all its streets."""

    path: Path = Field(description="the .net.xml or .net.xml.gz file, relative to the scenario's file")
    origin_m: Point = Field((0.0, 0.0), description="the scenario's [0, 0] in the network's coordinates")


class Area(Strict):
    """One area of the map, with exactly one shape."""

    disc: Disc | None = Field(None, description="{centre_m, radius_m}")
    rectangle: Rectangle | None = Field(None, description="{from_m, to_m}")
    polygon: Polygon | None = Field(None, description="{points_m}")
    geojson: GeoJson | None = Field(None, description="{path, feature}: polygons from a file in degrees")
    sumo_net: SumoNet | None = Field(None, description="{path, origin_m}: the bounding box of a SUMO network")

    @model_validator(mode="after")
    def _one_shape(self) -> Self:
        return one_of(self, "shape")

    def region(self, places: Places) -> _Region:
        """Return the region of the area, reading its map file if it has one."""
        if self.polygon is not None:
            return trapezoids([[self.polygon.points_m]])
        if self.geojson is not None:
            return _of_geojson(self.geojson, places)
        if self.sumo_net is not None:
            low_m, high_m = sumo_files.boundary(self.sumo_net.path)
            x, y = self.sumo_net.origin_m
            return Rectangle(from_m=(low_m[0] - x, low_m[1] - y), to_m=(high_m[0] - x, high_m[1] - y))
        region = self.disc or self.rectangle
        assert region is not None  # the schema requires one of the shapes
        return region


def _of_geojson(source: GeoJson, places: Places) -> Trapezoids:
    """Return the union of a GeoJSON file's polygons."""
    nothing = "an area needs polygons; lines are for streets, and for an area around a point use a disc"
    read = shapes(source if places.plane else source.whole, POLYGONS, nothing)
    lines = [ring for one in read for ring in one.rings]
    plane = places.on_earth(source.path, lines)
    with refused("geojson", "path"):
        rings = iter(plane.lines_to_m(lines))
        made = union([[next(rings) for _ in one.rings] for one in read])
        region = trapezoids(made.polygons)
    if made.repaired:
        places.notes.append(
            f"{source.path}: {made.repaired:,} of {len(read):,} polygons have sides that cross or coincide;"
            " such polygons are filled by the even-odd rule"
        )
    if made.dropped:
        places.notes.append(f"{source.path}: rings of fewer than three corners left out: {made.dropped:,}")
    return region


class _MapSource(Protocol):
    """A section that can read a scenario's streets."""

    def read(self, places: Places) -> _Streets:
        """Return the streets of the map, reading its file if it has one."""


def places(
    areas: Mapping[str, Area], origin_lon_lat: tuple[float, float] | None, streets: _MapSource | None = None
) -> Places:
    """Return the map of a scenario, which has the regions of its areas, and its streets.

    Raises:
        EdgeflError: an area or the streets are invalid; the message names the place in the scenario.
    """
    earth = Places({}, LocalPlane(*origin_lon_lat) if origin_lon_lat else None)
    regions: dict[str, _Region] = {}
    for name, area in areas.items():
        with moved((), ("areas", name)):
            regions[name] = area.region(earth)
    if streets is None:
        return replace(earth, areas=regions)
    with moved((), ("streets",)):
        return replace(earth, areas=regions, streets=streets.read(earth))
