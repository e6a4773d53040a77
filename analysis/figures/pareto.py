"""Draw time against energy with the Pareto front, at column width, for sweeps and comparisons."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import INK, SMALL, SOFT, legend, mark, note, panels, series_styles
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, unit_for

CLOSE = 0.02  # points closer than this, as a share of an axis, have one label
RING = 3.0  # points by which the lower of two coinciding marks is larger


def pareto_figure(points: pd.DataFrame, words: tuple[str, str], corner: str = "") -> Figure:
    """Draw time against energy; efficient points are filled and joined.

    Args:
        points: series, label (drawn beside the point; replaces the legend if it is the series' name), time_s,
            energy_j, missed (whether the target was missed: both costs are then lower bounds and dominate no point).
        words: names of time and energy on the axes.
        corner: text in the figure's corner that explains the labels.
    """
    figure, (ax,) = panels(1, 3.0)
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
    for name, style in series_styles(names).items():
        own = np.flatnonzero(points["series"] == name)
        ax.plot([], [], marker=style["marker"], color=style["color"], linestyle="none", label=name)
        for i in own:  # among coinciding marks, later ones are smaller and drawn on top
            mark(ax, x[[i]], y[[i]], style, best[[i]], 4.2 + RING * rings.get(int(i), 0))
    labels = [f"{'> ' if lower else ''}{label}" for label, lower in zip(points["label"], missed, strict=True)]
    named = (points["label"] == points["series"]).all()  # every series is a single point
    if named:
        for one in _together(ax, x, y):
            place, right = (x[one[0]], y[one[0]]), x[one[0]] < ax.get_xlim()[1] / 2
            _name(ax, place, ", ".join(labels[k] for k in one), right, fontsize=SMALL, color=INK)
    else:
        for place, label, name in zip(zip(x, y, strict=True), labels, points["series"], strict=True):
            _name(ax, place, label, names.index(name) % 2 == 0, fontsize=6, color=SOFT)
    ax.set_xlabel(f"{words[0]} ({time})")
    ax.set_ylabel(f"{words[1]} ({energy})")
    said = ["filled: Pareto-optimal", corner, ">: missed, a lower bound" if missed.any() else ""]
    ax.set_title("; ".join(filter(None, said)), fontsize=6.5, color=SOFT, loc="right", pad=2)
    if not named:
        legend(figure, ax)
    return figure


def efficient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mark the efficient points, for which no other point is smaller in one value and no larger in the other."""
    better = (x[:, None] <= x) & (y[:, None] <= y) & ((x[:, None] < x) | (y[:, None] < y))
    return ~better.any(axis=0) & np.isfinite(x) & np.isfinite(y)


def _name(ax: Axes, place: tuple[float, float], words: str, right: bool, **look: Any) -> None:
    """Write a label beside a point of the Pareto figure."""
    side: dict[str, Any] = {"ha": "left", "va": "top"} if right else {"ha": "right", "va": "bottom"}
    note(ax, words, place, (5, -2) if right else (-5, 2), **side, **look)


def _together(ax: Axes, x: np.ndarray, y: np.ndarray) -> list[list[int]]:
    """Group points that would coincide in the figure, in order of the first point of each group."""
    width, height = ax.get_xlim()[1], ax.get_ylim()[1]
    there: dict[tuple[int, int], list[int]] = {}
    for i in np.flatnonzero(np.isfinite(x + y)).tolist():
        there.setdefault((round(x[i] / width / CLOSE), round(y[i] / height / CLOSE)), []).append(i)
    return list(there.values())
