"""Streets of a map: lines from the scenario, a GeoJSON file or a SUMO network."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.config.strict import Strict, one_of
from edgefl.errors import refused
from edgefl.places.areas import Places, Point, SumoNet
from edgefl.places.map_files import LINES, geojson_lines, sumo_lines

if TYPE_CHECKING:
    from edgefl.places.street_map import StreetMap

Line = Annotated[tuple[Point, ...], Field(min_length=2)]


class GeoJsonLines(Strict):
    """Lines of a GeoJSON file (RFC 7946), in degrees, e.g. an extract of OpenStreetMap; needs origin_lon_lat."""

    path: Path = Field(description="the file, relative to the scenario's file")
    feature: str | None = Field(
        None, description="features with this `id`, or `name` among their properties; null: all lines"
    )


class Streets(Strict):
    """The streets, from exactly one of these sources.

    Lines of files meet where they share a point, as in OpenStreetMap: two that cross without one are a bridge and
    a road below it. Lines of `lines_m` meet wherever they cross. All streets go both ways; if parts do not meet, only
    the longest counts. Left out: one-way streets, lanes, lights, speed limits.
    """

    lines_m: tuple[Line, ...] | None = Field(
        None,
        min_length=1,
        max_length=1000,
        description="[[[x, y], [x, y], ...], ...] corners of each street",
    )
    geojson: GeoJsonLines | None = Field(
        None, description="{path, feature}: lines of a file, in degrees, e.g. exported from OpenStreetMap"
    )
    sumo_net: SumoNet | None = Field(None, description="{path, origin_m}: the streets of a SUMO network")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        return one_of(self, "source of streets")

    def street_map(self, places: Places) -> "StreetMap":
        """Return the map; reads map files.

        Raises:
            EdgeflError: a file cannot be read or has no street; names the remedy.
        """
        # imported here since it loads SciPy's graphs, which checking a scenario does not need
        from edgefl.places.street_map import StreetMap, cut_at_crossings

        if self.geojson is not None:
            plane = places.on_earth()
            nothing = "has no line; streets are LineStrings"
            lines = geojson_lines(self.geojson.path, self.geojson.feature, LINES, nothing)
            with refused("geojson", "path"):
                return StreetMap.of([plane.to_m(line) for line in lines])
        if self.sumo_net is not None:
            lines = sumo_lines(self.sumo_net.path)
            with refused("sumo_net", "path"):
                return StreetMap.of([np.array(line) - self.sumo_net.origin_m for line in lines])
        assert self.lines_m is not None  # the schema requires one of them
        with refused("lines_m"):
            return StreetMap.of(cut_at_crossings([np.array(line, dtype=float) for line in self.lines_m]))
