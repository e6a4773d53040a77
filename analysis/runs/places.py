"""Read the cells, areas and streets of a scenario from its file and from the maps that it names."""

import gzip
import json
import math
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from edgefl.analysis.runs.scenario_keys import scenario_of

MOST_STREETS = 5000  # of one network
LANE_M, NEAREST_LANE_M = 4.0, 35.0  # of a highway; twin of mobility/highway.py
EQUATOR_M, SQUARED_ECCENTRICITY = 6_378_137.0, 0.00669437999014  # WGS 84
NO_MAP = (OSError, EOFError, zlib.error, ElementTree.ParseError)  # a file cannot be read
NO_PLACES = (ValueError, LookupError, TypeError, AttributeError)  # or has unexpected content
# steps on the triangular grid, counter-clockwise; twin of channel/layout.py: `analysis` reads files only
DIRECTIONS = ((1, 0), (0, 1), (-1, 1), (-1, 0), (0, -1), (1, -1))


def map_of(run: str | Path, notes: list[str]) -> tuple[dict[str, Any], list[dict[str, Any]], list[Any]]:
    """Read the layout of a run's cells, its areas and its streets; unreadable maps are noted."""
    with scenario_of(run) as scenario:
        layout = layout_of(scenario)
        return layout, areas_of(scenario, notes), streets_of(scenario, layout["radius_m"], notes)


def layout_of(scenario: dict[str, Any]) -> dict[str, Any]:
    """Return the sites of a complete scenario, and the geometry drawn around them.

    Returns:
        sites [[x, y]], sectors, azimuth_deg, cells (their number), shape (disc: one cell; hexagons; open), isd_m,
        radius_m (of the world), images [[x, y]]: offsets of repetitions of the same world, if any.
    """
    layout, radius_m = scenario["layout"], float(scenario["cell"]["radius_m"])
    rings, isd_m, sites, images_at_m = int(layout["rings"]), float(layout["isd_m"]), layout.get("sites"), None
    if sites is not None:
        shape, sites_m, isd_m = "open", [list(site) for site in sites], 0.0
        world_m = float(layout.get("radius_m") or radius_m + max(math.hypot(*site) for site in sites))
    elif not rings:
        shape, sites_m, isd_m, world_m = "disc", [[0.0, 0.0]], 0.0, radius_m
    else:
        shape, world_m = "hexagons", (rings + 0.5) * isd_m
        sites_m = hexagonal_sites_m(rings, isd_m).round(2).tolist()
        if layout.get("edge") != "guard_ring":
            images_at_m = images_m(rings, isd_m).round(2).tolist()
    sectors_alike = not isinstance(layout["azimuth_deg"], list)
    return {
        "sectors": int(layout["sectors"]),
        "azimuth_deg": float(layout["azimuth_deg"]) if sectors_alike else 0.0,
        "cells": len(sites_m) * int(layout["sectors"])
        if sectors_alike
        else sum(map(len, layout["azimuth_deg"])),
        "images": images_at_m or [[0.0, 0.0]],
        "shape": shape,
        "sites": sites_m,
        "isd_m": isd_m,
        "radius_m": world_m,
    }


def hexagonal_sites_m(rings: int, isd_m: float) -> np.ndarray:
    """Return the sites [sites, 2]: the centre first, then ring by ring, each counter-clockwise from the x axis."""
    axial = [(0, 0)]
    for ring in range(1, rings + 1):
        for corner, side in zip(DIRECTIONS, DIRECTIONS[2:] + DIRECTIONS[:2], strict=True):
            axial += [(ring * corner[0] + n * side[0], ring * corner[1] + n * side[1]) for n in range(ring)]
    return _metres(axial, isd_m)


def images_m(rings: int, isd_m: float) -> np.ndarray:
    """Return the offsets [7, 2] of a layout that repeats on six sides, the first 0."""
    moved = [(0, 0), (rings + 1, rings)]
    for _ in range(5):
        q, r = moved[-1]
        moved.append((-r, q + r))  # a sixth of a turn
    return _metres(moved, isd_m)


def _metres(axial: list[tuple[int, int]], isd_m: float) -> np.ndarray:
    grid = np.array(axial, float)
    return isd_m * np.stack([grid[:, 0] + 0.5 * grid[:, 1], math.sqrt(0.75) * grid[:, 1]], axis=1)


def areas_of(scenario: dict[str, Any], notes: list[str]) -> list[dict[str, Any]]:
    """List the areas, {name, points: the corners of each ring} or {name, centre, radius}.

    An unreadable map file is left out, with a note.
    """
    areas = []
    for name, area in (scenario.get("areas") or {}).items():
        if disc := area.get("disc"):
            areas.append({"name": name, "centre": list(disc["centre_m"]), "radius": disc["radius_m"]})
        elif box := area.get("rectangle"):
            (left, low), (right, high) = box["from_m"], box["to_m"]
            corners = [[left, low], [right, low], [right, high], [left, high]]
            areas.append({"name": name, "points": [corners]})
        elif polygon := area.get("polygon"):
            areas.append({"name": name, "points": [[list(point) for point in polygon["points_m"]]]})
        elif shape := area.get("geojson"):
            with _noted(notes, f"Area {name}"):
                rings = _rings_m(shape, scenario["origin_lon_lat"])
                areas.append({"name": name, "points": rings})
    return areas


def streets_of(scenario: dict[str, Any], radius_m: float, notes: list[str]) -> list[list[list[float]]]:
    """List the streets, each a line of [x, y]: the scenario's own, and those of grids, highways and SUMO networks.

    Args:
        radius_m: the world's radius, see `layout_of`.
        notes: list to which a note is appended for each network whose file cannot be read.
    """
    streets = list(_of_the_map(scenario, notes))
    devices = scenario["devices"]
    groups = [devices, *(devices.get("classes") or {}).values()]
    models = [group["mobility"] for group in groups if isinstance(group.get("mobility"), dict)]
    for model in models:
        if model.get("name") == "manhattan":
            streets += _grid(model["area_factor"] * radius_m, model["block_m"])
        elif model.get("name") == "highway":
            streets += _lanes(model, model["area_factor"] * radius_m)
    for name, area in (scenario.get("areas") or {}).items():
        if net := area.get("sumo_net"):
            with _noted(notes, f"The street map of area {name}"):
                streets += islice(_network(net), MOST_STREETS)
    return [
        [[round(x, 1), round(y, 1)] for x, y in line] for line in {repr(one): one for one in streets}.values()
    ]


def _of_the_map(scenario: dict[str, Any], notes: list[str]) -> Iterator[list[list[float]]]:
    """Read the streets of moving devices."""
    source = scenario.get("streets") or {}
    yield from source.get("lines_m") or ()
    with _noted(notes, "The map of the streets"):
        if net := source.get("sumo_net"):
            yield from islice(_network(net), MOST_STREETS)
        if shape := source.get("geojson"):
            lines = (line for one in _geometries(shape) for line in _lines(one))
            for line in islice(lines, MOST_STREETS):
                yield local_m(line, scenario["origin_lon_lat"]).tolist()


def _grid(half_m: float, block_m: float) -> list[list[list[float]]]:
    """Return the streets of a square grid, with the middle of a block at the origin."""
    pairs = math.ceil(half_m / block_m - 0.5)
    at_m = [(number + 0.5) * block_m for number in range(-pairs, pairs)]
    return [line for m in at_m for line in ([[m, -half_m], [m, half_m]], [[-half_m, m], [half_m, m]])]


def _lanes(model: dict[str, Any], half_m: float) -> list[list[list[float]]]:
    """Return the lanes of a straight road."""
    y_m = [NEAREST_LANE_M + lane * LANE_M for lane in range(2 * model["lanes"])]
    return [[[-half_m, m], [half_m, m]] for m in y_m]


def _network(net: dict[str, Any]) -> Iterator[list[list[float]]]:
    """Read one lane of each street of a SUMO network, in the scenario's metres."""
    path, (x0, y0) = Path(net["path"]), net["origin_m"]
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        for _, element in ElementTree.iterparse(file):
            if element.tag == "edge":
                lane = element.find("lane")
                if lane is not None and element.get("function") != "internal":
                    points = [point.split(",")[:2] for point in str(lane.get("shape")).split()]
                    yield [[float(x) - x0, float(y) - y0] for x, y in points]
                element.clear()


def _rings_m(shape: dict[str, Any], origin_lon_lat: Sequence[float]) -> list[list[list[float]]]:
    """Read the rings of a GeoJSON file's polygons, in metres from the origin."""
    rings = [ring for one in _geometries(shape) for ring in _rings(one)]
    return [local_m(ring, origin_lon_lat).round(1).tolist() for ring in rings]


def _geometries(shape: dict[str, Any]) -> list[dict[str, Any]]:
    """Read the geometries of a GeoJSON file's selected features."""
    document = json.loads(Path(shape["path"]).read_text(encoding="utf-8"))
    features = document.get("features") or [document]
    if wanted := shape.get("feature"):
        named = [(one.get("id"), (one.get("properties") or {}).get("name")) for one in features]
        features = [one for one, names in zip(features, named, strict=True) if wanted in map(str, names)]
    return [one.get("geometry") or one for one in features]


def _lines(geometry: dict[str, Any]) -> Iterator[Any]:
    for one in geometry.get("geometries") or ():
        yield from _lines(one)
    if geometry.get("type") == "LineString":
        yield geometry["coordinates"]
    elif geometry.get("type") == "MultiLineString":
        yield from geometry["coordinates"]


def _rings(geometry: dict[str, Any]) -> Iterator[Any]:
    for one in geometry.get("geometries") or ():
        yield from _rings(one)
    polygons = geometry.get("coordinates") or ()
    for polygon in [polygons] if geometry.get("type") == "Polygon" else polygons:
        if geometry.get("type") in ("Polygon", "MultiPolygon"):
            yield from polygon


def local_m(lon_lat_deg: Any, origin_deg: Sequence[float]) -> np.ndarray:
    """Convert longitudes and latitudes [n, 2] to metres east and north of a place, accurate enough for a drawing.

    It uses the radii of curvature of WGS 84 at the origin: within 10 km the error is below a thousandth.
    """
    degrees = np.asarray(lon_lat_deg, float)[:, :2]
    away = np.radians(degrees - np.asarray(origin_deg, float))
    flat = 1.0 - SQUARED_ECCENTRICITY * math.sin(math.radians(origin_deg[1])) ** 2
    north_m = EQUATOR_M * (1.0 - SQUARED_ECCENTRICITY) / flat**1.5 * away[:, 1]
    east_m = EQUATOR_M / math.sqrt(flat) * np.cos(np.radians(degrees[:, 1])) * away[:, 0]
    return np.stack([east_m, north_m], axis=1)


@contextmanager
def _noted(notes: list[str], what: str) -> Iterator[None]:
    """Leave out what a map file no longer gives: the replay is correct without it."""
    try:
        yield
    except (*NO_MAP, *NO_PLACES) as error:
        notes.append(f"{what} is not drawn, because its map cannot be read ({error}).")
