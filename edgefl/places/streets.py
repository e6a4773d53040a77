"""Read the streets of a map from the scenario, a GeoJSON file or a SUMO network, with the modes that may use them."""

from collections import Counter
from collections.abc import Collection, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NamedTuple, Self

import numpy as np
from pydantic import Field, model_validator

from edgefl.config.strict import Strict, one_of
from edgefl.errors import EdgeflError, clipped, refused
from edgefl.places import permissions, sumo_files
from edgefl.places.areas import GeoJson, Places, Point, SumoNet
from edgefl.places.geojson_files import LINES, shapes
from edgefl.places.permissions import MODES, Mode

if TYPE_CHECKING:
    from edgefl.places.street_map import StreetMap

Line = Annotated[tuple[Point, ...], Field(min_length=2)]
MOST_DRAWN = 5000
MOST_KINDS = 5  # maximum number of kinds of closed streets in a note


class _Street(NamedTuple):
    """A street with its corners [points, 2] in m, its kind as tagged in the map, and the modes that may use it."""

    line_m: np.ndarray
    kind: str = ""
    open_to: Collection[Mode] = MODES


class _StreetLines:
    """All streets of a map, open or closed to a mode of travel.

    Args:
        streets: all streets, open or closed.
        source: key below `streets` that specifies the map, and the map's name in messages.
        notes: list to which a note on omitted streets is appended.
    """

    def __init__(self, streets: Sequence[_Street], source: tuple[str, str], notes: list[str]) -> None:
        self.streets = streets
        self._key, self._name = source
        self._notes = notes
        self._maps: dict[Mode, StreetMap] = {}

    def map_for(self, mode: Mode) -> "StreetMap":
        """Return the map of the streets that are open to a mode.

        Raises:
            EdgeflError: no street is open to the mode; the message names the remedy.
        """
        if mode not in self._maps:
            place = ("streets", self._key) if self._key == "lines_m" else ("streets", self._key, "path")
            with refused(*place):
                self._maps[mode] = self._made(mode)
        return self._maps[mode]

    def drawn(self) -> list[list[list[float]]]:
        """Return corners, m, of up to MOST_DRAWN streets open to a mode in use, or to any mode if none is in use."""
        modes = set(self._maps or MODES)
        lines_m = (one.line_m for one in self.streets if modes.intersection(one.open_to))
        return [(line.round(1) + 0.0).tolist() for line in islice(lines_m, MOST_DRAWN)]

    def _made(self, mode: Mode) -> "StreetMap":
        # a late import, since it loads SciPy's graphs, which checking a scenario does not need
        from edgefl.places.street_map import StreetMap

        closed = Counter(clipped(one.kind) for one in self.streets if mode not in one.open_to)
        kinds = ", ".join(f"{many:,} {kind}" for kind, many in closed.most_common(MOST_KINDS))
        if closed.total() == len(self.streets):
            others = [other for other in MODES if any(other in one.open_to for one in self.streets)]
            remedy = (
                f"its streets are open to mode {' and '.join(others)}"
                if others
                else "give a map with streets"
            )
            raise ValueError(f"{self._name}: no street of the map is open to mode {mode} ({kinds}); {remedy}")
        if closed:
            self._notes.append(
                f"{self._name}: {closed.total():,} of {len(self.streets):,} lines of the map are left out, because"
                f" mode {mode} is not allowed on them: {kinds}{', ...' if len(closed) > MOST_KINDS else ''}"
            )
        made = StreetMap.of([one.line_m for one in self.streets if mode in one.open_to])
        if made.lost is not None:
            lost_m = made.lost.lengths_m.sum()
            share = lost_m / (lost_m + made.lengths_m.sum())
            streets = f"streets for mode {mode}" if closed else "streets"
            self._notes.append(
                f"{self._name}: {100 * share:.3g} % of the length of the {streets} is cut off from the rest"
                " and left out"
            )
        return made


class Streets(Strict):
    """The streets of a scenario, from exactly one source.

    Lines of files meet where they share a point, as in OpenStreetMap: two lines that cross without a common point are
    a bridge and a road below it. Lines of `lines_m` meet wherever they cross. All streets can be used in both
    directions; if the map is not connected, only its part with the longest streets is used.

    A mode of travel (foot, bicycle, bus, car) keeps to the streets where it is permitted: in a SUMO network by
    `allow` and `disallow` of the lanes, and never on railways and waterways; in GeoJSON by OpenStreetMap's `highway`
    with the worldwide defaults of its wiki, and `access`, `foot`, `bicycle`, `vehicle`, `motor_vehicle` and the like.
    If any line has the tag `highway`, lines without this tag are not streets; otherwise every line is a street except
    those tagged `railway`, `power`, `building` and the like. Left out: one-way streets, lanes, lights, speed limits.
    """

    lines_m: tuple[Line, ...] | None = Field(
        None, min_length=1, max_length=1000, description="corners of each street: [[[x, y], ...], ...]"
    )
    geojson: GeoJson | None = Field(
        None, description="{path, feature}: lines of a map file in degrees, e.g. exported from OpenStreetMap"
    )
    sumo_net: SumoNet | None = Field(None, description="{path, origin_m}: the streets of a SUMO network")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        return one_of(self, "source of streets")

    def read(self, places: Places) -> _StreetLines:
        """Return the streets of the map, reading its file if it has one.

        Raises:
            EdgeflError: a file cannot be read or contains no line; the message names the remedy.
        """
        if self.geojson is not None:
            name = str(self.geojson.path)
            streets = _of_geojson(self.geojson, places)
            return _StreetLines(streets, ("geojson", name), places.notes)
        if self.sumo_net is not None:
            streets = [
                _Street(np.array(line) - self.sumo_net.origin_m, kind, permissions.of_lanes(kind, edge.lanes))
                for edge, line in sumo_files.edges(self.sumo_net.path)
                for kind in [edge.attributes.get("type") or "edge without a type"]
            ]
            return _StreetLines(streets, ("sumo_net", str(self.sumo_net.path)), places.notes)
        # a late import, since it loads SciPy
        from edgefl.places.street_map import cut_at_crossings

        assert self.lines_m is not None  # the schema requires one of the sources
        with refused("lines_m"):
            lines = cut_at_crossings([np.array(line, dtype=float) for line in self.lines_m])
        return _StreetLines([_Street(line) for line in lines], ("lines_m", "lines_m"), places.notes)


def _of_geojson(source: GeoJson, places: Places) -> list[_Street]:
    nothing = "streets are LineStrings, such as OpenStreetMap's ways with `highway`; polygons are for areas"
    chosen = source if places.plane else source.whole
    read = [(permissions.tags_of(one.properties), one.rings[0]) for one in shapes(chosen, LINES, nothing)]
    lines = [(tags, line) for tags, line in read if len(line) > 1]
    if len(lines) < len(read):
        places.notes.append(f"{source.path}: one-point lines left out: {len(read) - len(lines):,}")
    highways_only = any("highway" in tags for tags, _ in lines)
    if not lines:
        raise EdgeflError(f"{source.path}: {nothing}", ("geojson", "path"))
    plane = places.on_earth(source.path, [line for _, line in lines])
    with refused("geojson", "path"):
        metres = plane.lines_to_m([line for _, line in lines])
        return [
            _Street(line, permissions.name_of(tags), permissions.of_tags(tags, highways_only))
            for (tags, _), line in zip(lines, metres, strict=True)
        ]
