"""Test the map in previews, pictures and films: areas, cells, panels, streets, devices."""

import math
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edgefl.analysis.figures.map import ELSEWHERE, MapDrawing, area_patch, cells_of, points_of
from edgefl.analysis.figures.style import PALETTE
from edgefl.analysis.runs.places import Ground, _hexagonal_sites_m, ground_of, layout_of
from edgefl.engine.air.layout import LayoutSettings
from edgefl.places.polygons import trapezoids, union

ISD_M = 500.0
CELL = {"radius_m": 250.0}
OPEN = {
    "rings": 0,
    "isd_m": 200.0,
    "sectors": 1,
    "sites": [[0, 0], [300, 0]],
    "azimuth_deg": [[30, 150], [90]],
}


def drawing(figure: Figure, ground: Ground, served: list[int]) -> tuple[Axes, MapDrawing]:
    """Return an empty map of 100 x 100 pixels of 10 m around the origin."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    return axes, MapDrawing(axes, ground, served, (0.0, 0.0), 500.0)


def pixels(figure: Figure) -> np.ndarray:
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[::-1, :, :3]  # row 0 is the southernmost


def square(half_m: float) -> list[tuple[float, float]]:
    return [(-half_m, -half_m), (half_m, -half_m), (half_m, half_m), (-half_m, half_m)]


def test_a_hole_is_empty() -> None:
    """In a picture of 100 x 100 pixels of 1 m, only pixels 20 to 40 m from the middle are black."""
    figure = Figure(figsize=(1, 1), dpi=100)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(-50, 50), ylim=(-50, 50))
    axes.set_axis_off()
    drawn = trapezoids(union([[square(40), square(20)]]).polygons).drawn()
    axes.add_patch(area_patch({"name": "ring", **drawn}, facecolor="black", linewidth=0, antialiased=False))
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    dark = np.asarray(canvas.buffer_rgba())[:, :, 0] < 128
    assert dark.sum() == 80**2 - 40**2
    assert not dark[30:70, 30:70].any()


def test_cells_share_the_map_and_each_is_nearest_to_its_site() -> None:
    sites_m = _hexagonal_sites_m(1, ISD_M)
    panels = [[30.0, 150.0, 270.0]] * 7
    layout = {"shape": "hexagons", "sites": sites_m.tolist(), "panels": panels, "isd_m": ISD_M}
    cells = cells_of(layout)
    assert list(cells) == list(range(21))
    areas = [
        abs(np.sum(x * np.roll(y, 1) - y * np.roll(x, 1))) / 2
        for x, y in (corners.T for corners in cells.values())
    ]
    assert areas == pytest.approx([ISD_M**2 * math.sqrt(3) / 6] * 21, rel=1e-3)
    for cell, corners in cells.items():
        middle_m = corners.mean(axis=0)
        assert np.hypot(*(sites_m - middle_m).T).argmin() == cell // 3
        off_deg = np.degrees(np.arctan2(*(middle_m - sites_m[cell // 3])[::-1])) - 30 - 120 * (cell % 3)
        assert (off_deg + 180) % 360 - 180 == pytest.approx(0, abs=1), "the place is not ahead of its panel"
    assert cells_of({**layout, "shape": "open"}) == {}


@pytest.mark.parametrize(
    "layout", [OPEN, {**OPEN, "azimuth_deg": 10.0}, {**OPEN, "azimuth_deg": 10.0, "sectors": 3}]
)
def test_panels_and_cells_are_those_of_the_engine(layout: dict[str, Any]) -> None:
    settings = LayoutSettings.model_validate(layout)
    read = layout_of({"cell": CELL, "layout": layout})
    assert [tuple(of) for of in read["panels"] if of] == list(settings.bearings_deg)
    assert read["cells"] == settings.cells


def test_what_spans_the_map() -> None:
    drawn = {
        "areas": [
            {"name": "far", "points": [[[600, 0], [700, 0], [700, 10], [600, 10]]]},
            {"name": "park", "centre": [0, -900], "radius": 50},
        ],
        "streets": [[[-800, 1], [0, 1]]],
    }
    points_m = points_of(ground_of({"cell": CELL, "layout": OPEN, "devices": {}}, drawn))
    assert points_m.min(axis=0).tolist() == [-800, -950]
    assert points_m.max(axis=0).tolist() == [700, 10]


def test_devices_have_the_colour_of_their_cell_and_streets_are_there() -> None:
    """Devices of cell 2, the second cell with a server, have its colour; devices of other cells or none are grey."""
    figure = Figure(figsize=(1, 1), dpi=100)
    scenario = {"cell": CELL, "layout": {**OPEN, "sites": [[-450, -450], [-450, 450]]}, "devices": {}}
    empty = Figure(figsize=(1, 1), dpi=100)
    drawing(empty, ground_of(scenario, {}), [0, 2])
    bare = pixels(empty)
    axes, map_drawn = drawing(figure, ground_of(scenario, {"streets": [[[-250, 0], [250, 0]]]}), [0, 2])
    street = pixels(figure)
    differs = (street != bare).any(axis=2)
    assert differs[45:55, 30:70].any()
    assert not differs[:40].any()
    places_m = np.array([[-200.0, 300.0], [0.0, 300.0], [200.0, 300.0], [np.nan, np.nan]])
    map_drawn.show(places_m, np.array([2.0, 1.0, np.nan, 2.0]), [], np.empty(0), np.empty((0, 2)))
    seen = pixels(figure)
    found = ["#{:02x}{:02x}{:02x}".format(*seen[80, column]) for column in (30, 50, 70)]
    assert found == [PALETTE[1].lower(), ELSEWHERE, ELSEWHERE]
    assert axes.get_xlim() == (-500, 500)


def test_cells_of_one_colour_have_different_markers() -> None:
    """Seven cells have six colours, so a device of the seventh cell is drawn as a square, beside a round one."""
    ground = ground_of(
        {"cell": CELL, "layout": {**OPEN, "sites": [[0, 0]] * 7, "azimuth_deg": [[0]] * 7}, "devices": {}}, {}
    )
    _, drawn = drawing(Figure(), ground, list(range(7)))
    assert drawn.colour(6) == drawn.colour(0)
    assert [drawn.marker(cell) for cell in (0, 5, 6, math.nan, 99)] == ["o", "o", "s", "o", "o"]
    places_m, none = np.array([[0.0, 0.0], [50.0, 0.0]]), np.empty((0, 2))
    drawn.show(places_m, np.array([0.0, 6.0]), [], np.empty(0), none)
    shown = {mark: np.asarray(one.get_offsets()).tolist() for mark, one in drawn._devices.items()}
    assert shown == {"o": [[0.0, 0.0]], "s": [[50.0, 0.0]]}
