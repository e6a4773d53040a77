"""Where the cells and areas of a scenario lie, read from its file."""

import math
from typing import Any

import numpy as np

# steps on the triangular grid, counter-clockwise; twin of channel/layout.py: `analysis` reads files only
DIRECTIONS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


def layout_of(scenario: dict[str, Any]) -> dict[str, Any]:
    """Find the sites of a complete scenario, and what is drawn around them.

    Returns:
        sites [[x, y]], sectors, azimuth_deg, shape (disc: one cell; hexagons; open), isd_m, radius_m (of the world),
        images [[x, y]]: how far the same world is repeated, where it is.
    """
    layout, radius_m = scenario["layout"], float(scenario["cell"]["radius_m"])
    about = {
        "sectors": int(layout["sectors"]),
        "azimuth_deg": float(layout["azimuth_deg"]),
        "images": [[0.0, 0.0]],
    }
    sites = layout.get("sites")
    if sites is not None:
        reach_m = radius_m + max(math.hypot(*site) for site in sites)
        world_m = float(layout.get("radius_m") or reach_m)
        return {
            **about,
            "shape": "open",
            "sites": [list(site) for site in sites],
            "isd_m": 0.0,
            "radius_m": world_m,
        }
    rings, isd_m = int(layout["rings"]), float(layout["isd_m"])
    if not rings:
        return {**about, "shape": "disc", "sites": [[0.0, 0.0]], "isd_m": 0.0, "radius_m": radius_m}
    sites_m = hexagonal_sites_m(rings, isd_m).round(2).tolist()
    if layout.get("edge") != "guard_ring":
        about["images"] = images_m(rings, isd_m).round(2).tolist()
    return {**about, "shape": "hexagons", "sites": sites_m, "isd_m": isd_m, "radius_m": (rings + 0.5) * isd_m}


def hexagonal_sites_m(rings: int, isd_m: float) -> np.ndarray:
    """Place [sites, 2]: the centre first, then ring by ring, each counter-clockwise from the x axis."""
    axial = [(0, 0)]
    for ring in range(1, rings + 1):
        for corner, side in zip(DIRECTIONS, DIRECTIONS[2:] + DIRECTIONS[:2], strict=True):
            axial += [(ring * corner[0] + n * side[0], ring * corner[1] + n * side[1]) for n in range(ring)]
    return _metres(axial, isd_m)


def images_m(rings: int, isd_m: float) -> np.ndarray:
    """List [7, 2] how far a repeated layout is moved, to stand beside itself on six sides; first: not at all."""
    moved = [(0, 0), (rings + 1, rings)]
    for _ in range(5):
        q, r = moved[-1]
        moved.append((-r, q + r))  # a sixth of a turn
    return _metres(moved, isd_m)


def _metres(axial: list[tuple[int, int]], isd_m: float) -> np.ndarray:
    grid = np.array(axial, float)
    return isd_m * np.stack([grid[:, 0] + 0.5 * grid[:, 1], math.sqrt(0.75) * grid[:, 1]], axis=1)


def areas_of(scenario: dict[str, Any]) -> list[dict[str, Any]]:
    """List the areas whose shape the file has, {name, points} or {name, centre, radius}; maps are left out."""
    areas = []
    for name, area in (scenario.get("areas") or {}).items():
        if disc := area.get("disc"):
            areas.append({"name": name, "centre": list(disc["centre_m"]), "radius": disc["radius_m"]})
        elif box := area.get("rectangle"):
            (left, low), (right, high) = box["from_m"], box["to_m"]
            corners = [[left, low], [right, low], [right, high], [left, high]]
            areas.append({"name": name, "points": corners})
        elif polygon := area.get("polygon"):
            areas.append({"name": name, "points": [list(point) for point in polygon["points_m"]]})
    return areas
