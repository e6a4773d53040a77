"""Define the colours, dashes, markers and axes of all figures, without pyplot's display and global state."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.ticker import FuncFormatter, MaxNLocator

DPI = 150
# Okabe and Ito's colour-blind-safe palette, the reference's blue first; yellow left out, unreadable on white
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"]
# each dash pattern is sparser than the pattern before it, so that all lines stay visible where they coincide
SPARSER: list[Any] = ["-", (0, (5, 3)), (0, (1.2, 2.6)), (0, (3, 6)), (0, (1.2, 5)), (0, (6, 12))]
INK, SOFT, EDGE = "#222222", "#666666", "#c9ced3"
WORDS_PER_INCH = 15.5  # average number of characters per inch in an explanation
TITLE_PER_INCH = 9.0  # the same in a title of full size
LEGEND_PER_INCH = 18.0  # the same in a legend of small text
WIDTH_INCH = 3.5  # one column of an IEEE page
COLUMN_DPI = 300
SMALL = 7.5  # size of small text, points
# each series has its own dash and marker, so that series differ also in greyscale
DASHES: list[Any] = ["-", (0, (4, 1.4)), (0, (1.2, 1.1)), (0, (6, 1.4, 1.2, 1.4)), (0, (2.5, 1))]
MARKS = "osD^vP*X"

Styles = dict[str, dict[str, Any]]


def variant_styles(names: Sequence[str], emphasised: str | None) -> Styles:
    """Choose the colour, dash pattern and line width of every variant.

    All lines stay visible where they coincide: the emphasised line is wide and lowest, and dashes become sparser.
    """
    styles: Styles = {}
    colours = PALETTE[1:] if emphasised in names else PALETTE
    for name in names:
        if name == emphasised:
            styles[name] = {"color": PALETTE[0], "linestyle": "-", "linewidth": 3.2, "zorder": 4}
            continue
        others = len(styles) - (emphasised in styles)
        turn, number = divmod(others, len(colours))
        dash = SPARSER[1 + (others + turn - 1) % (len(SPARSER) - 1)] if others else SPARSER[0]
        order = 5 - 1 / (2 + others)  # the last line lies on top
        styles[name] = {"color": colours[number], "linestyle": dash, "linewidth": 1.5, "zorder": order}
    return styles


def styles_of(table: pd.DataFrame, reference: str | None) -> Styles:
    """Choose the style of every variant in a table; a single variant is emphasised like a reference."""
    names = list(dict.fromkeys(table["variant"]))
    return variant_styles(names, reference or (names[0] if len(names) == 1 else None))


def heading(figure: Figure, height: float, title: str, explained: str) -> None:
    """Write a title at a given height of a figure, and an explanation below the title, in lines that fit.

    A title with a long name has smaller letters.
    """
    size = 12.5 * min(1.0, figure.get_figwidth() * TITLE_PER_INCH / len(title))
    figure.text(0.012, height, title, fontsize=size, fontweight="bold", color=INK, va="center")
    lines = textwrap.fill(explained, int(figure.get_figwidth() * WORDS_PER_INCH))
    figure.text(0.012, height - 0.021, lines, fontsize=9, color=SOFT, va="top", linespacing=1.1)


def note(
    ax: Axes,
    words: str,
    place: tuple[float, float],
    offset: tuple[float, float],
    *,
    top: bool = False,
    **look: Any,
) -> Annotation:
    """Write text beside a point of the axes, at an offset in points; with `top`, y is a share of the height."""
    look = {"fontsize": 7.5, "color": INK, **({"xycoords": ("data", "axes fraction")} if top else {}), **look}
    return ax.annotate(words, place, offset, textcoords="offset points", **look)


def plain(ax: Axes, grid: bool = False) -> None:
    """Draw axes with as little ink as possible."""
    for side in ("top", "right") if not grid else ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#9aa0a6")
    ax.tick_params(labelsize=8.5, color="#9aa0a6", labelcolor=INK, length=3 if not grid else 0)
    ax.grid(axis="y", color="#dfe3e6", linewidth=0.7, zorder=0.5)
    ax.set_axisbelow(True)
    ax.yaxis.set_major_locator(MaxNLocator(4 if grid else 6, steps=[1, 2, 2.5, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    ax.xaxis.label.set_fontsize(9)
    ax.yaxis.label.set_fontsize(9)


def whole(ax: Axes, *, from_zero: bool = True) -> None:
    """Place the ticks of an axis of counts at whole numbers only."""
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    if from_zero:
        ax.set_ylim(bottom=0, top=max(1.0, ax.get_ylim()[1]))


def series_styles(names: Sequence[str]) -> Styles:
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
    figure = Figure(figsize=(WIDTH_INCH, height_inch), dpi=COLUMN_DPI, layout="constrained")
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
    """Add a legend above the panels if there are several series, in one column if names are long."""
    named = {
        label: handle for ax in axes for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    labels, handles = list(named), list(named.values())
    if len(labels) > 1:
        room, longest = (figure.get_figwidth() - 0.4) * LEGEND_PER_INCH, max(map(len, labels))
        columns = 1 if longest > room / 2 - 6 else 2 if longest > 14 else min(3, len(labels))
        figure.legend(
            handles,
            labels,
            loc="outside upper center",
            ncols=columns,
            frameon=False,
            fontsize=SMALL * min(1.0, room / longest),
            labelcolor=INK,
            handlelength=2.6,
            handletextpad=0.5,
            columnspacing=1.2,
        )
