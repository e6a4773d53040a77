"""What the figures at column width share: size, series told apart by colour, dash and mark, PNG and PDF."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import INK, PALETTE, plain

WIDTH_INCH = 3.5  # of a column of an IEEE page
DPI = 300
SMALL = 7.5  # points
# each series has its own, so that it is known in grey too
DASHES: list[Any] = ["-", (0, (4, 1.4)), (0, (1.2, 1.1)), (0, (6, 1.4, 1.2, 1.4)), (0, (2.5, 1))]
MARKS = "osD^vP*X"

Series = dict[str, dict[str, Any]]


def series_styles(names: Sequence[str]) -> Series:
    """Choose colour, dash and mark of every series, in their order."""
    return {
        name: {
            "color": PALETTE[i % len(PALETTE)],
            "linestyle": DASHES[i % len(DASHES)],
            "marker": MARKS[i % len(MARKS)],
        }
        for i, name in enumerate(names)
    }


def panels(count: int, height_inch: float, **choices: Any) -> tuple[Figure, list[Axes]]:
    """Make a figure of one column with panels below one another."""
    figure = Figure(figsize=(WIDTH_INCH, height_inch), dpi=DPI, layout="constrained")
    axes = list(figure.subplots(count, 1, squeeze=False, **choices)[:, 0])
    for ax in axes:
        plain(ax)
        ax.tick_params(labelsize=SMALL)
        ax.xaxis.label.set_fontsize(SMALL + 0.5)
        ax.yaxis.label.set_fontsize(SMALL + 0.5)
    return figure, axes


def mark(ax: Axes, x: np.ndarray, y: np.ndarray, style: dict[str, Any], filled: np.ndarray) -> None:
    """Draw marks of a series: filled, or open in the same colour."""
    look = style | {"markersize": 4.2, "linestyle": "none", "zorder": 5}
    for face, some in ((style["color"], filled), ("white", ~filled)):
        ax.plot(x[some], y[some], markerfacecolor=face, **look)


def legend(figure: Figure, *axes: Axes) -> None:
    """Name the series of these panels above them all, if there are several."""
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
