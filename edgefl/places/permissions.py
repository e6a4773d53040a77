"""Decide which means of travel may use a street, by SUMO's permissions and OpenStreetMap's tags."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

Mode = Literal["foot", "bicycle", "bus", "car"]
MODES: tuple[Mode, ...] = get_args(Mode)
SUMO: dict[Mode, str] = {"foot": "pedestrian", "bicycle": "bicycle", "bus": "bus", "car": "passenger"}
# Highways that are not open to all modes. Source: OpenStreetMap wiki, OSM tags for routing/Access restrictions,
# worldwide defaults; cycleways and bridleways are open to pedestrians, as in most countries of the wiki's tables
VEHICLES: frozenset[Mode] = frozenset({"bus", "car"})
_GROUPS: tuple[tuple[str, frozenset[Mode]], ...] = (
    ("footway pedestrian steps corridor platform elevator", frozenset({"foot"})),
    ("path cycleway bridleway", frozenset({"foot", "bicycle"})),
    ("motorway motorway_link", VEHICLES),
    ("busway bus_guideway", frozenset({"bus"})),
    ("construction proposed planned abandoned disused razed raceway no", frozenset()),
)
HIGHWAYS = {name: modes for names, modes in _GROUPS for name in names.split()}
# Keys from general to specific; a street's most specific key decides. Source: OpenStreetMap wiki, Key:access
ACCESS: dict[Mode, tuple[str, ...]] = {
    "foot": ("access", "foot"),
    "bicycle": ("access", "vehicle", "bicycle"),
    "bus": ("access", "vehicle", "motor_vehicle", "psv", "bus"),
    "car": ("access", "vehicle", "motor_vehicle", "motorcar"),
}
CLOSED = {"no", "private", "agricultural", "forestry", "military", "use_sidepath", "emergency"}
# Tags of lines in OpenStreetMap that are not streets
OTHERS = (
    *("railway", "power", "waterway", "aeroway", "aerialway", "pipeline", "barrier", "boundary", "building"),
    *("man_made", "natural", "landuse", "leisure", "route"),
)
_STORED = re.compile(r'"((?:[^"\\]|\\.)*)"=>"((?:[^"\\]|\\.)*)"')


def of_lanes(kind: str, lanes: Sequence[Mapping[str, str]]) -> set[Mode]:
    """Return the modes that may use any lane of a SUMO edge.

    A lane without permissions is open to all modes, unless the edge's type names only railways or waterways.

    Args:
        kind: SUMO's type of the edge.
        lanes: attributes of the edge's lanes.
    """
    parts = kind.split("|")
    permitted = any(lane.get("allow") or lane.get("disallow") for lane in lanes)
    if not permitted and all(part.startswith(("railway.", "waterway.")) for part in parts):
        return set()
    return {mode for mode in MODES if not lanes or any(_allows(lane, SUMO[mode]) for lane in lanes)}


def _allows(lane: Mapping[str, str], vehicle: str) -> bool:
    allow, disallow = lane.get("allow", "").split(), lane.get("disallow", "").split()
    if allow:
        return vehicle in allow or "all" in allow
    return vehicle not in disallow and "all" not in disallow


def tags_of(properties: Mapping[str, Any]) -> dict[str, str]:
    """Return a feature's OpenStreetMap tags from its properties, in which programs store them differently.

    The tags are properties (osmtogeojson, QGIS), within `tags` (older osmtogeojson), or in the text `other_tags`
    (GDAL). In Overture's maps, roads have the class of the highway, and railways and waterways have a subtype.
    """
    nested = properties.get("tags")
    stored = properties.get("other_tags")
    tags = {
        **(nested if isinstance(nested, Mapping) else {}),
        **dict(_STORED.findall(stored) if isinstance(stored, str) else ()),
        **properties,
    }
    overture = {"road": "highway", "rail": "railway", "water": "waterway"}.get(str(tags.get("subtype")))
    if overture is not None:
        tags.setdefault(overture, tags.get("class") or "yes")
    return {key: _first(value) for key, value in tags.items() if _first(value)}


def _first(value: Any) -> str:
    """Return a tag's value, or its first value if it is a list (OSMnx), or an empty text if there is none."""
    if isinstance(value, list):
        value = value[0] if value else None
    return str(value) if isinstance(value, str | int | float) else ""


def of_tags(tags: Mapping[str, str], highways_only: bool) -> set[Mode]:
    """Return the modes that may use a line with tags of OpenStreetMap.

    Args:
        tags: tags of the line.
        highways_only: whether only lines with the tag `highway` are streets; otherwise every line is a street unless
            its tags say that it is something else.
    """
    highway = tags.get("highway")
    if highway is None and (highways_only or any(key in tags for key in OTHERS)):
        return set()
    modes = HIGHWAYS.get(highway or "", frozenset(MODES))
    if tags.get("motorroad") == "yes":
        modes = modes & VEHICLES
    return {mode for mode in MODES if modes and _may(tags, ACCESS[mode], by_default=mode in modes)}


def _may(tags: Mapping[str, str], keys: Sequence[str], *, by_default: bool) -> bool:
    """Return whether a mode may use a line, given the keys that tag its access, from general to specific."""
    may = by_default
    for key in keys:
        if tags.get(key) in CLOSED:
            may = False
        elif key in tags and key != "access":  # access=yes does not open a motorway to pedestrians
            may = True
    return may


def name_of(tags: Mapping[str, str]) -> str:
    """Return a line's kind for notes, such as highway=motorway, or highway=service with access=private."""
    kind = next((f"{key}={tags[key]}" for key in ("highway", *OTHERS) if key in tags), "no highway")
    closed = [f"{key}={tags[key]}" for key in ("access", "foot") if tags.get(key) in CLOSED]
    return " with ".join([kind, *closed[-1:]])
