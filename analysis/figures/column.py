"""Shared parts of column-width figures: size, colours, dashes and markers of series, PNG and PDF."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import INK, PALETTE, plain

WIDTH_INCH = 3.5  # one column of an IEEE page
DPI = 300
SMALL = 7.5  # points
# each series has its own dash and marker: they must differ in greyscale too
DASHES: list[Any] = ["-", (0, (4, 1.4)), (0, (1.2, 1.1)), (0, (6, 1.4, 1.2, 1.4)), (0, (2.5, 1))]
MARKS = "osD^vP*X"

Series = dict[str, dict[str, Any]]


def series_styles(names: Sequence[str]) -> Series:
    """Assign each series a colour, dash and marker, in order."""
    return {
        name: {
            "color": PALETTE[i % len(PALETTE)],
            "linestyle": DASHES[i % len(DASHES)],
            "marker": MARKS[i % len(MARKS)],
        }
        for i, name in enumerate(names)
    }


def panels(count: int, height_inch: float, **choices: Any) -> tuple[Figure, list[Axes]]:
    """Make a one-column figure with `count` stacked panels."""
    figure = Figure(figsize=(WIDTH_INCH, height_inch), dpi=DPI, layout="constrained")
    axes = list(figure.subplots(count, 1, squeeze=False, **choices)[:, 0])
    for ax in axes:
        plain(ax)
        ax.tick_params(labelsize=SMALL)
        ax.xaxis.label.set_fontsize(SMALL + 0.5)
        ax.yaxis.label.set_fontsize(SMALL + 0.5)
    return figure, axes


def mark(
    ax: Axes, x: np.ndarray, y: np.ndarray, style: dict[str, Any], filled: np.ndarray, size: float = 4.2
) -> None:
    """Draw the markers of a series, filled or open."""
    look = style | {"markersize": size, "linestyle": "none", "zorder": 5}
    for face, some in ((style["color"], filled), ("white", ~filled)):
        ax.plot(x[some], y[some], markerfacecolor=face, **look)


def legend(figure: Figure, *axes: Axes) -> None:
    """Add a legend above the panels if there are several series."""
    named = {
        label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    labels, handles = list(named), list(named.values())
    if len(labels) > 1:
        columns = 2 if max(map(len, labels)) > 14 else min(3, len(labels))
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=columns,
            frameon=False,
            fontsize=SMALL,
            labelcolor=INK,
            handlelength=2.6,
            handletextpad=0.5,
            columnspacing=1.2,
        )
