"""Read the cells, areas and streets of a run from its directory."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgefl.analysis.runs.scenario_keys import scenario_of

MAP = "map.json"
LANE_M, NEAREST_LANE_M = 4.0, 35.0  # lanes of a highway, as in mobility/highway.py
# steps on the triangular grid, counter-clockwise; repeated from channel/layout.py, which `analysis` does not import
DIRECTIONS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


class Ground(NamedTuple):
    """The immobile parts of a map: cells, areas and streets.

    Attributes:
        layout: sites and cells, as `layout_of` returns them.
        areas: areas, each with a name, and with points (rings, where clockwise rings are holes) or centre and radius.
        streets: lines, each a list of points [x, y].
    """

    layout: dict[str, Any]
    areas: list[dict[str, Any]]
    streets: list[list[list[float]]]


def map_of(run: str | Path, notes: list[str]) -> Ground:
    """Read the layout of a run's cells, its areas and its streets; note if the run's map.json cannot be read."""
    with scenario_of(run) as scenario:
        bare = ground_of(scenario, {})
        drawn = bool(scenario.get("areas") or scenario.get("streets"))
    try:
        drawing = json.loads((Path(run) / MAP).read_text(encoding="utf-8")) if drawn else {}
        return ground_of(scenario, drawing)
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        notes.append(f"Areas and streets are not drawn, because {MAP} cannot be read ({error}).")
        return bare


def ground_of(scenario: dict[str, Any], drawing: Mapping[str, Any]) -> Ground:
    """Return the ground of a complete scenario, with the areas and streets of `drawing`, which is map.json.

    The streets of grids and highways are added.
    """
    layout = layout_of(scenario)
    areas = [
        {"name": str(area["name"])}
        | (
            {"points": [_points(ring) for ring in area["points"]]}
            if "points" in area
            else {"centre": _points([area["centre"]])[0], "radius": float(area["radius"])}
        )
        for area in drawing.get("areas", ())
    ]
    streets = [_points(line) for line in drawing.get("streets", ())]
    return Ground(layout, areas, streets + _streets_of(scenario, layout["radius_m"]))


def _points(places: Any) -> list[list[float]]:
    """Return positions [n, 2] as a list of [x, y]; raise if they are not pairs of numbers."""
    checked: list[list[float]] = np.array(places, dtype=float).reshape(-1, 2).tolist()
    return checked


def layout_of(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the sites of a complete scenario, and the geometry drawn around them.

    Returns:
        sites [[x, y]], panels (bearings of each site's antennas, counter-clockwise from x; none for a site that sends
        in all directions), cells (the number of cells), shape (disc: one cell; hexagons; open), isd_m, radius_m (of
        the world), images [[x, y]] (offsets of repetitions of the same world, if any).
    """
    layout, radius_m = scenario["layout"], float(scenario["cell"]["radius_m"])
    rings, isd_m, sites = int(layout["rings"]), float(layout["isd_m"]), layout.get("sites")
    images_at_m: list[list[float]] = [[0.0, 0.0]]
    if sites is not None:
        shape, sites_m, isd_m = "open", [list(site) for site in sites], 0.0
        world_m = float(layout.get("radius_m") or radius_m + max(math.hypot(*site) for site in sites))
    elif not rings:
        shape, sites_m, isd_m, world_m = "disc", [[0.0, 0.0]], 0.0, radius_m
    else:
        shape, world_m = "hexagons", (rings + 0.5) * isd_m
        sites_m = _hexagonal_sites_m(rings, isd_m).round(2).tolist()
        images_at_m = _images_m(rings, isd_m).round(2).tolist()
    bearings, sectors = layout["azimuth_deg"], int(layout["sectors"])
    if isinstance(bearings, list):
        panels = [[float(bearing) for bearing in of] for of in bearings]
    else:
        turns = [360 / sectors * number for number in range(sectors)] if sectors > 1 else []
        panels = [[float(bearings) + turn for turn in turns] for _ in sites_m]
    return {
        "panels": panels,
        "cells": sum(max(1, len(of)) for of in panels),
        "images": images_at_m,
        "shape": shape,
        "sites": sites_m,
        "isd_m": isd_m,
        "radius_m": world_m,
    }


def _hexagonal_sites_m(rings: int, isd_m: float) -> np.ndarray:
    """Return a hexagonal layout's sites [sites, 2]: the centre, then rings, counter-clockwise from the x axis."""
    axial = [(0, 0)]
    for ring in range(1, rings + 1):
        for corner, side in zip(DIRECTIONS, DIRECTIONS[2:] + DIRECTIONS[:2], strict=True):
            axial += [(ring * corner[0] + n * side[0], ring * corner[1] + n * side[1]) for n in range(ring)]
    return _metres(axial, isd_m)


def _images_m(rings: int, isd_m: float) -> np.ndarray:
    """Return the offsets [7, 2] of the copies of a layout that repeats on six sides; the first offset is 0."""
    moved = [(0, 0), (rings + 1, rings)]
    for _ in range(5):
        q, r = moved[-1]
        moved.append((-r, q + r))  # a sixth of a turn
    return _metres(moved, isd_m)


def _metres(axial: list[tuple[int, int]], isd_m: float) -> np.ndarray:
    grid = np.array(axial, float)
    return isd_m * np.stack([grid[:, 0] + 0.5 * grid[:, 1], math.sqrt(0.75) * grid[:, 1]], axis=1)


def _streets_of(scenario: dict[str, Any], radius_m: float) -> list[list[list[float]]]:
    """List the streets of grids and highways, each a line of [x, y]; `layout_of` defines radius_m."""
    devices = scenario["devices"]
    groups = [devices, *(devices.get("classes") or {}).values()]
    models = [group["mobility"] for group in groups if isinstance(group.get("mobility"), dict)]
    streets = []
    for model in models:
        if model.get("name") == "manhattan":
            streets += _grid(model["area_factor"] * radius_m, model["block_m"])
        elif model.get("name") == "highway":
            streets += _lanes(model, model["area_factor"] * radius_m)
    return [
        [[round(x, 1), round(y, 1)] for x, y in line] for line in {repr(one): one for one in streets}.values()
    ]


def _grid(half_m: float, block_m: float) -> list[list[list[float]]]:
    """Return the streets of a square grid, with the middle of a block at the origin."""
    pairs = math.ceil(half_m / block_m - 0.5)
    at_m = [(number + 0.5) * block_m for number in range(-pairs, pairs)]
    return [line for m in at_m for line in ([[m, -half_m], [m, half_m]], [[-half_m, m], [half_m, m]])]


def _lanes(model: dict[str, Any], half_m: float) -> list[list[list[float]]]:
    """Return the lanes of a straight road, each as a line between two points, m."""
    y_m = [NEAREST_LANE_M + lane * LANE_M for lane in range(2 * model["lanes"])]
    return [[[-half_m, m], [half_m, m]] for m in y_m]
