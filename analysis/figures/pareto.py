"""Draw time against energy with the Pareto front, at column width, for sweeps and comparisons."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox, BboxBase

from edgefl.analysis.figures.style import SOFT, legend, mark, note, panels, series_styles
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, unit_for

CLOSE = 0.02  # points closer than this, as a share of an axis, coincide
# sides of a point for its label: alignments, and the offset in points
Side = tuple[str, str, tuple[float, float]]
SIDES: tuple[Side, ...] = (
    ("left", "top", (5, -2)),
    ("right", "bottom", (-5, 2)),
    ("left", "bottom", (5, 2)),
    ("right", "top", (-5, -2)),
    ("center", "bottom", (0, 6)),
    ("center", "top", (0, -6)),
)
MARK_PT = 3.0  # half of a mark's width
WIDEST = 56  # characters in a line above the axes
RING = 3.0  # points by which the lower of two coinciding marks is larger


def pareto_figure(points: pd.DataFrame, words: tuple[str, str], corner: str = "") -> Figure:
    """Draw time against energy; efficient points are filled and joined.

    Args:
        points: series, label (drawn beside the point unless it is the series' name), time_s, energy_j, missed
            (whether the target was missed: both costs are then lower bounds and dominate no point).
        words: names of time and energy on the axes.
        corner: text in the figure's corner that explains the labels.
    """
    figure, (ax,) = panels(1, 3.3)
    (time, seconds), (energy, joules) = (
        unit_for(points["time_s"], TIME_UNITS),
        unit_for(points["energy_j"], ENERGY_UNITS),
    )
    x, y = points["time_s"].to_numpy(float) / seconds, points["energy_j"].to_numpy(float) / joules
    missed = points["missed"].to_numpy(bool)
    best = efficient(np.where(missed, np.nan, x), y)
    front = sorted(zip(x[best], y[best], strict=True))
    if front:
        ax.step(*zip(*front, strict=True), where="post", color=SOFT, linewidth=0.8, zorder=2)
    names = list(dict.fromkeys(points["series"]))
    ax.set_xlim(left=0, right=float(np.nanmax(x)) * 1.1)
    ax.set_ylim(bottom=0, top=float(np.nanmax(y)) * 1.1)
    rings = {i: len(one) - 1 - order for one in _together(ax, x, y) for order, i in enumerate(one)}
    single = (points["label"] == points["series"]).all()  # every series is a single point
    for name, style in series_styles(names).items():
        own = np.flatnonzero(points["series"] == name)
        named = f"{_bound(single and missed[own[0]])}{name}"
        ax.plot([], [], marker=style["marker"], color=style["color"], linestyle="none", label=named)
        for i in own:  # among coinciding marks, later ones are smaller and drawn on top
            mark(ax, x[[i]], y[[i]], style, best[[i]], 4.2 + RING * rings.get(int(i), 0))
    # names of single points, which may be close to each other, would overlap: they are only in the legend
    named_points = [] if single else list(points.assign(x=x, y=y).itertuples())
    labels = [_name(ax, point) for point in named_points]
    ax.set_xlabel(f"{words[0]} ({time})")
    ax.set_ylabel(f"{words[1]} ({energy})")
    said = [
        "filled: Pareto-optimal" if front else "",
        corner,
        ">:\u00a0missed, a lower bound" if missed.any() else "",
    ]
    lines = textwrap.wrap("; ".join(filter(None, said)), WIDEST)
    ax.set_title("\n".join(lines), fontsize=6.5, color=SOFT, loc="right", pad=2)
    legend(figure, ax)
    if labels:
        first = [names.index(point.series) % 2 for point in named_points]
        _place(figure, ax, labels, np.column_stack([x, y]), first)
    return figure


def efficient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mark the efficient points, for which no other point is smaller in one value and no larger in the other."""
    better = (x[:, None] <= x) & (y[:, None] <= y) & ((x[:, None] < x) | (y[:, None] < y))
    return ~better.any(axis=0) & np.isfinite(x) & np.isfinite(y)


def _bound(missed: bool) -> str:
    return "> " if missed else ""


def _name(ax: Axes, point: Any) -> Annotation:
    """Write a point's label beside it."""
    words = f"{_bound(point.missed)}{point.label}"
    return note(ax, words, (point.x, point.y), (5, -2), ha="left", va="top", fontsize=6, color=SOFT)


def _place(
    figure: Figure, ax: Axes, labels: Sequence[Annotation], places: np.ndarray, first: Sequence[int]
) -> None:
    """Move each label to the side of its point where it overlaps the fewest marks and earlier labels.

    Args:
        places: [points, 2] of the marks in data coordinates. first: index in SIDES of the side to prefer.
    """
    figure.draw_without_rendering()  # lays out the axes, in which labels have their places
    centres, half = ax.transData.transform(places), MARK_PT * figure.dpi / 72
    taken: list[BboxBase] = [
        Bbox([centre - half, centre + half]) for centre in centres if np.isfinite(centre).all()
    ]
    for label, begin in zip(labels, first, strict=True):
        tried = []
        for order, side in enumerate([*SIDES[begin:], *SIDES[:begin]]):
            box = _moved(label, side)
            overlaps = sum(box.overlaps(other) for other in taken) + (box.x0 < ax.bbox.x0)
            tried.append((overlaps, order, side))
        taken.append(_moved(label, min(tried)[-1]))


def _moved(label: Annotation, side: Side) -> BboxBase:
    """Move a label to a side of its point; return the place that it takes."""
    ha, va, label.xyann = side
    label.set(ha=ha, va=va)
    return label.get_window_extent()


def _together(ax: Axes, x: np.ndarray, y: np.ndarray) -> list[list[int]]:
    """Group points that would coincide in the figure, in order of the first point of each group."""
    width, height = ax.get_xlim()[1], ax.get_ylim()[1]
    there: dict[tuple[int, int], list[int]] = {}
    for i in np.flatnonzero(np.isfinite(x + y)).tolist():
        there.setdefault((round(x[i] / width / CLOSE), round(y[i] / height / CLOSE)), []).append(i)
    return list(there.values())
