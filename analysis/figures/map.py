"""Draw a map of cells, areas, streets and sites, with devices, their trails and handovers."""

import math
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Circle, Patch, PathPatch, Polygon
from matplotlib.path import Path
from matplotlib.patheffects import withStroke

from edgefl.analysis.figures.style import INK, PALETTE, SOFT, note
from edgefl.analysis.runs.places import Ground

ELSEWHERE, EDGE = "#8d969e", "#ccd3d9"
STREET, KERB = "#ffffff", "#b4bcc4"
STREET_M, STREET_POINTS = 14.0, (0.9, 4.0)  # width of a street, and its bounds on a map of MAP_POINTS
MAP_POINTS = 350.0
STEP_DEG = 3.0
MOST_NAMED = 6  # if more cells than this have a server, only the first cell is named
MOST_NUMBERED, MOST_AREAS = 21, 40  # largest numbers of cells and of area names that are written
COLOURS, MARKERS = PALETTE[:6], "osDvph"  # when all colours are taken, further cells have the next marker
MANY = 150  # number of devices up to which markers have their full size
CLOSE = 0.05  # share of the map between two names of areas
HALO = [withStroke(linewidth=2.5, foreground="white")]
NAME: dict[str, Any] = {"ha": "center", "path_effects": HALO, "annotation_clip": True}


class MapDrawing:
    """A square map on axes, on which `show` moves the drawn devices.

    Args:
        served: cells with a server, in the order of their colours; all other cells are grey.
        middle_m: the middle of the map.
        half_m: half the side of the map.
        numbered: whether to write the number of each cell beside its site, for maps beside tables of cells.
    """

    def __init__(
        self,
        axes: Axes,
        ground: Ground,
        served: Sequence[int],
        middle_m: Sequence[float],
        half_m: float,
        *,
        numbered: bool = False,
    ) -> None:
        self._axes, self._half_m = axes, half_m
        numbered = numbered or ground.layout["shape"] == "open"
        self._numbered = numbered and 1 < ground.layout["cells"] <= MOST_NUMBERED
        self._colours = {cell: COLOURS[number % len(COLOURS)] for number, cell in enumerate(served)}
        self._markers = {
            cell: MARKERS[number // len(COLOURS) % len(MARKERS)] for number, cell in enumerate(served)
        }
        x, y = middle_m
        axes.set(xlim=(x - half_m, x + half_m), ylim=(y - half_m, y + half_m), aspect="equal")
        self._cells(ground.layout, served)
        self._streets(ground.streets)
        self._areas(ground.areas)
        self._sites(ground.layout)
        self._scale(x + half_m, y + half_m)
        self._trails = LineCollection([], linewidths=1.6, capstyle="round", zorder=4)
        axes.add_collection(self._trails, autolim=False)
        self._crosses = axes.scatter([], [], marker="x", s=26, color=INK, linewidth=0.9, zorder=4.5)
        look: dict[str, Any] = {"s": 34, "linewidth": 0.7, "edgecolor": "white", "zorder": 5}
        marks = dict.fromkeys((MARKERS[0], *self._markers.values()))
        self._devices = {mark: axes.scatter([], [], marker=mark, **look) for mark in marks}

    def colour(self, cell: float) -> str:
        """Return a cell's colour; grey for a cell without a server, and for NaN (no cell)."""
        return self._colours.get(int(cell), ELSEWHERE) if np.isfinite(cell) else ELSEWHERE

    def marker(self, cell: float) -> str:
        """Return the marker of a cell's devices."""
        return self._markers.get(int(cell), MARKERS[0]) if np.isfinite(cell) else MARKERS[0]

    def show(
        self,
        places_m: np.ndarray,
        serving: np.ndarray,
        trails_m: Sequence[np.ndarray] | np.ndarray,
        trail_cells: np.ndarray,
        handovers_m: np.ndarray,
        *,
        strength: float = 0.45,
    ) -> None:
        """Redraw the devices, trails and handovers for another time.

        Args:
            places_m: [devices, 2] positions of the devices, NaN for an absent device.
            serving: [devices] serving cell of each device, NaN for a device without a serving cell.
            trails_m: trails that devices left, each a line [points, 2].
            trail_cells: [trails] the serving cell on each trail.
            handovers_m: [handovers, 2] places of handovers.
            strength: opacity of the trails.
        """
        there = np.isfinite(places_m[:, 0])
        marks = np.array([self.marker(cell) for cell in serving])
        for mark, drawn in self._devices.items():
            own = there & (marks == mark)
            drawn.set_offsets(places_m[own])
            drawn.set_sizes([_size(34, int(there.sum()))])
            drawn.set_facecolor([self.colour(cell) for cell in serving[own]])
        self._trails.set_segments(list(trails_m))
        self._trails.set_color([to_rgba(self.colour(cell), strength) for cell in trail_cells])
        self._crosses.set_offsets(handovers_m)
        self._crosses.set_sizes([_size(26, len(handovers_m))])

    def _cells(self, layout: Mapping[str, Any], served: Sequence[int]) -> None:
        for cell, corners in cells_of(layout).items():
            colour = self._colours.get(cell)
            face = to_rgba(colour, 0.13) if colour else (1, 1, 1, 0)
            self._axes.add_patch(Polygon(corners, facecolor=face, edgecolor=EDGE, linewidth=0.9, zorder=1))
            if (
                colour
                and not self._numbered
                and layout["cells"] > 1
                and (cell == served[0] or len(served) <= MOST_NAMED)
            ):
                x, y = 0.2 * corners.mean(axis=0) + 0.8 * corners[corners[:, 1].argmax()]
                look: dict[str, Any] = {"fontsize": 9, "fontweight": "bold", "color": colour, "ha": "left"}
                self._axes.text(
                    x, y, f"cell {cell}", va="top", zorder=6, path_effects=HALO, clip_on=True, **look
                )

    def _streets(self, streets: Sequence[Any]) -> None:
        lines = [np.array(street) for street in streets]
        width = float(np.clip(STREET_M * MAP_POINTS / (2 * self._half_m), *STREET_POINTS))
        for colour, wide, order in ((KERB, width + 1.0, 2.0), (STREET, width, 2.1)):
            look: dict[str, Any] = {"colors": colour, "linewidths": wide, "zorder": order}
            self._axes.add_collection(
                LineCollection(lines, capstyle="round", joinstyle="round", **look), autolim=False
            )

    def _areas(self, areas: Sequence[Mapping[str, Any]]) -> None:
        """Draw areas, each with its name below it, or above it if another name is close."""
        named: list[tuple[float, float]] = []
        look: dict[str, Any] = {"facecolor": (0, 0, 0, 0.035), "edgecolor": (0, 0, 0, 0.3), "linewidth": 0.7}
        for area in areas:
            self._axes.add_patch(area_patch(area, zorder=1.5, **look))
            if len(areas) > MOST_AREAS:
                continue
            if "radius" in area:
                (x, y), radius_m = area["centre"], area["radius"]
                low, high = y - radius_m, y + radius_m
            else:
                corners = np.concatenate([np.array(ring) for ring in area["points"]])
                x, low, high = corners[:, 0].mean(), corners[:, 1].min(), corners[:, 1].max()
            close_m = CLOSE * self._half_m
            taken = any(math.hypot(x - other_x, low - other_y) < close_m for other_x, other_y in named)
            named.append((float(x), float(high if taken else low)))
            up, side = (3, "bottom") if taken else (-3, "top")
            about: dict[str, Any] = {"fontsize": 9, "color": SOFT, "va": side, "zorder": 3}
            note(self._axes, area["name"], named[-1], (0, up), **about, **NAME)

    def _sites(self, layout: Mapping[str, Any]) -> None:
        sites_m, cell = np.array(layout["sites"]), 0
        look: dict[str, Any] = {"color": "white", "edgecolor": INK, "linewidth": 1.1, "zorder": 3}
        self._axes.scatter(sites_m[:, 0], sites_m[:, 1], marker="^", s=55, **look)
        for site_m, bearings in zip(sites_m, layout["panels"], strict=True):
            ways = [np.array([math.cos(way), math.sin(way)]) for way in np.radians(bearings)]
            if layout["shape"] != "hexagons":  # hexagonal cells' sides show the sectors
                for way in ways:
                    panel_m = site_m + 0.07 * self._half_m * np.stack([0 * way, way])
                    self._axes.plot(*panel_m.T, color=INK, linewidth=1.2, zorder=2.9)
            for way in ways or [np.array([0.0, -1.0])]:
                if self._numbered:
                    off = tuple((14 if layout["shape"] == "hexagons" or not bearings else 19) * way)
                    weight = "bold" if cell in self._colours else "normal"
                    about: dict[str, Any] = {
                        "color": self._colours.get(cell, INK),
                        "fontweight": weight,
                        "fontsize": 8,
                    }
                    note(self._axes, str(cell), tuple(site_m), off, va="center", zorder=6, **about, **NAME)
                cell += 1

    def _scale(self, right: float, high: float) -> None:
        """Draw a scale bar, with a round number of metres, in the upper right corner."""
        power = 10 ** math.floor(math.log10(0.4 * self._half_m))
        length_m = next(n * power for n in (5, 2, 1) if n * power <= 0.4 * self._half_m)
        words = f"{length_m / 1000:g} km" if length_m >= 1000 else f"{length_m:g} m"
        right, high = right - 0.04 * self._half_m, high - 0.05 * self._half_m
        look: dict[str, Any] = {"color": INK, "zorder": 6, "path_effects": HALO}
        self._axes.plot([right - length_m, right], [high, high], linewidth=1.6, **look)
        note(
            self._axes,
            words,
            (right - length_m / 2, high),
            (0, -3),
            fontsize=8,
            ha="center",
            va="top",
            **look,
        )


def _size(usual: float, number: int) -> float:
    """Return the area of a device's marker in square points, smaller if there are many devices."""
    return usual * min(1.0, math.sqrt(MANY / max(number, 1)))


def area_patch(area: Mapping[str, Any], **look: Any) -> Patch:
    """Return the shape of an area of map.json: a disc, or rings, where clockwise rings are holes."""
    if "radius" in area:
        return Circle(area["centre"], area["radius"], **look)
    rings = [Path([*ring, ring[0]], closed=True) for ring in area["points"]]
    return PathPatch(Path.make_compound_path(*rings), **look)


def cells_of(layout: Mapping[str, Any]) -> dict[int, np.ndarray]:
    """Return the corners [n, 2] of each cell, the region nearest to its site, split by sector."""
    if layout["shape"] == "open":
        return {}
    corners = []
    for place_m, bearings in zip(layout["sites"], layout["panels"], strict=True):
        half = 180 / max(1, len(bearings))
        for middle in bearings or [0.0]:
            turns = np.radians(np.arange(middle - half, middle + half + STEP_DEG / 2, STEP_DEG))
            if layout["shape"] == "hexagons":  # sides face the neighbours at 0, 60, ... degrees
                reach_m = layout["isd_m"] / 2 / np.cos((turns + np.pi / 6) % (np.pi / 3) - np.pi / 6)
            else:
                reach_m = np.full(len(turns), layout["radius_m"])
            edge = place_m + reach_m[:, None] * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
            corners.append(np.concatenate([[place_m], edge]) if bearings else edge)
    return dict(enumerate(corners))


def points_of(ground: Ground) -> np.ndarray:
    """Return points [n, 2] that span sites, areas and streets."""
    around = [
        np.array(area["centre"]) + area["radius"] * np.array([[-1, -1], [1, 1]])
        if "radius" in area
        else np.concatenate([np.array(ring) for ring in area["points"]])
        for area in ground.areas
    ]
    return np.concatenate([*chain([ground.layout["sites"]], around, ground.streets)])
