"""Time against energy, at column width: which points nothing else beats in both. For sweeps and comparisons alike."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.column import legend, mark, panels, series_styles
from analysis.figures.style import SOFT
from analysis.formatting import ENERGY_UNITS, TIME_UNITS, unit_for


def pareto_figure(points: pd.DataFrame, words: tuple[str, str], corner: str = "") -> Figure:
    """Draw time against energy; filled and joined: nothing else is better in both.

    Args:
        points: series, label (written beside it), time_s, energy_j, missed (a target was: both are lower bounds,
            which beat nothing).
        words: what time and energy are.
        corner: what the labels are.
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
    for name, style in series_styles(names).items():
        own = (points["series"] == name).to_numpy()
        ax.plot([], [], marker=style["marker"], color=style["color"], linestyle="none", label=name)
        mark(ax, x[own], y[own], style, best[own])
    labels = [f"{'> ' if lower else ''}{label}" for label, lower in zip(points["label"], missed, strict=True)]
    _name(ax, x, y, labels, [names.index(name) % 2 == 0 for name in points["series"]])
    ax.set_xlim(left=0, right=float(np.nanmax(x)) * 1.1)
    ax.set_ylim(bottom=0, top=float(np.nanmax(y)) * 1.1)
    ax.set_xlabel(f"{words[0]} ({time})")
    ax.set_ylabel(f"{words[1]} ({energy})")
    said = [corner, ">: target missed, at least this"] if missed.any() else [corner]
    ax.set_title("; ".join(filter(None, said)), fontsize=6.5, color=SOFT, loc="right", pad=2)
    legend(figure, ax)
    return figure


def efficient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mark the points than which no other is at least as small in both and smaller in one."""
    better = (x[:, None] <= x) & (y[:, None] <= y) & ((x[:, None] < x) | (y[:, None] < y))
    return ~better.any(axis=0) & np.isfinite(x) & np.isfinite(y)


def _name(ax: Axes, x: np.ndarray, y: np.ndarray, labels: Sequence[str], right: Sequence[bool]) -> None:
    """Write each label beside its point."""
    for i, words in enumerate(labels):
        ax.annotate(
            words,
            (x[i], y[i]),
            (5, -2) if right[i] else (-5, 2),
            textcoords="offset points",
            ha="left" if right[i] else "right",
            va="top" if right[i] else "bottom",
            fontsize=6,
            color=SOFT,
        )
