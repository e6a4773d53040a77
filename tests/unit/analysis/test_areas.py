"""Areas as pictures show them."""

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from edgefl.analysis.figures.areas import area_patch
from edgefl.places.polygons import trapezoids, union


def square(half_m: float) -> list[tuple[float, float]]:
    return [(-half_m, -half_m), (half_m, -half_m), (half_m, half_m), (-half_m, half_m)]


def test_a_hole_is_empty() -> None:
    """Of a picture of 100 x 100 pixels of 1 m, the area from 20 to 40 m around the middle is black, and no more."""
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
