"""Areas of a map as matplotlib draws them."""

from collections.abc import Mapping
from typing import Any

from matplotlib.patches import Circle, Patch, PathPatch
from matplotlib.path import Path


def area_patch(area: Mapping[str, Any], **look: Any) -> Patch:
    """Return the shape of an area of map.json: a disc, or rings, where clockwise ones are holes."""
    if "radius" in area:
        return Circle(area["centre"], area["radius"], **look)
    rings = [Path([*ring, ring[0]], closed=True) for ring in area["points"]]
    return PathPatch(Path.make_compound_path(*rings), **look)
