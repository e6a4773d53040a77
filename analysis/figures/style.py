"""Shared style of all figures, without pyplot's display and global state: resolution, colours, plain axes."""

import textwrap
from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from edgefl.analysis.page.report import Found

DPI = 150
# Okabe and Ito's colour-blind-safe palette, the reference's blue first; yellow left out, unreadable on white
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"]
# each sparser than those before, which it leaves to be seen where lines coincide
DASHES: list[Any] = ["-", (0, (5, 3)), (0, (1.2, 2.6)), (0, (3, 6)), (0, (1.2, 5)), (0, (6, 12))]
INK, SOFT = "#222222", "#666666"
WORDS_PER_INCH = 15.5  # letters of an explanation

Styles = dict[str, dict[str, Any]]


def variant_styles(names: Sequence[str], emphasised: str | None) -> Styles:
    """Choose colour, dash and weight of every variant, the emphasised one first.

    Where lines coincide, all are seen: the emphasised one is wide and lies below, and dashes become sparser.
    """
    styles: Styles = {}
    colours = PALETTE[1:] if emphasised in names else PALETTE
    for name in names:
        if name == emphasised:
            styles[name] = {"color": PALETTE[0], "linestyle": "-", "linewidth": 3.2, "zorder": 4}
            continue
        others = len(styles) - (emphasised in styles)
        turn, number = divmod(others, len(colours))
        dash = DASHES[1 + (others + turn - 1) % (len(DASHES) - 1)] if others else DASHES[0]
        order = 5 - 1 / (2 + others)  # the last one on top
        styles[name] = {"color": colours[number], "linestyle": dash, "linewidth": 1.5, "zorder": order}
    return styles


def styles_of(found: Found) -> Styles:
    """Choose the style of every variant found; a single one is emphasised like a reference."""
    names = list(dict.fromkeys(found.table["variant"]))
    return variant_styles(names, found.reference or (names[0] if len(names) == 1 else None))


def heading(figure: Figure, height: float, title: str, explained: str) -> None:
    """Write a title at this height of a figure, and an explanation below it, in lines that fit."""
    figure.text(0.012, height, title, fontsize=12.5, fontweight="bold", color=INK, va="center")
    lines = textwrap.fill(explained, int(figure.get_figwidth() * WORDS_PER_INCH))
    figure.text(0.012, height - 0.021, lines, fontsize=9, color=SOFT, va="top", linespacing=1.1)


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
    """Give an axis of counts ticks at whole numbers only."""
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True, steps=[1, 2, 5, 10]))
    if from_zero:
        ax.set_ylim(bottom=0, top=max(1.0, ax.get_ylim()[1]))
