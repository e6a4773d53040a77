"""Draw what each variant's opening of a session is worth: its accuracy, and time and energy to a target."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

from edgefl.analysis.figures.style import INK, Styles, plain
from edgefl.analysis.page.formatting import ENERGY_UNITS, amount, with_unit

LOGARITHMIC = 20.0  # an axis is logarithmic from this ratio of largest to smallest mean
ROUND_S = (0.001, 0.01, 0.1, 1.0, 60.0, 3600.0, 86_400.0)
GAP = 0.05  # of the box, between two panels


def draw_openings(
    figure: Figure, box: tuple[float, float, float, float], spent: pd.DataFrame, styles: Styles, target: str
) -> None:
    """Draw a row per variant and a panel per quantity: means as bars, seeds as small circles.

    Args:
        box: left, bottom, width and height as shares of the figure.
        spent: a row per variant and seed: accuracy_start (in percent), seconds, joules, missed.
        target: what seconds and joules are to.
    """
    left, bottom, width, height = box
    each = (width - 2 * GAP) / 3
    columns: list[tuple[str, str, Callable[[float], str]]] = [
        ("accuracy_start", "accuracy at the start", lambda value: f"{value:.0f} %"),
        ("seconds", f"time to {target}", duration),
        ("joules", f"energy to {target}", lambda value: with_unit(value, ENERGY_UNITS)),
    ]
    for number, (column, title, text) in enumerate(columns):
        ax = figure.add_axes((left + number * (each + GAP), bottom, each, height))
        plain(ax)
        ax.grid(False)
        rows = {name: spent.loc[spent["variant"] == name, [column, "missed"]] for name in styles}
        if not spent[column].notna().any():
            ax.axis("off")
            continue
        _axis(ax, column, [float(rows[name][column].mean()) for name in styles], spent[column], text)
        for row, (name, style) in enumerate(styles.items()):
            _row(ax, row, rows[name].dropna(), column, style["color"], text)
        ax.set_title(title, fontsize=9, color=INK, loc="left", pad=5)
        ax.set_ylim(len(styles) - 0.4, -0.6)
        ax.set_yticks(range(len(styles)), list(styles) if not number else [])
        for label, style in zip(ax.get_yticklabels(), styles.values(), strict=False):
            label.set(
                color=style["color"], fontsize=9.5, fontweight="bold" if style["linewidth"] > 2 else "normal"
            )
        ax.tick_params(axis="y", length=0)


def _axis(
    ax: Axes, column: str, means: Sequence[float], values: pd.Series, text: Callable[[float], str]
) -> None:
    """Choose a linear axis from 0, or a logarithmic one where the means differ much."""
    known = [mean for mean in means if math.isfinite(mean) and mean > 0]
    if column == "seconds" and known and max(known) >= LOGARITHMIC * min(known):
        low, high = 0.5 * float(values[values > 0].min()), float(values.max())
        ax.set_xscale("log")
        ax.set_xlim(low, high * (high / low) ** 0.35)  # room for the last value
        ax.set_xticks([tick for tick in ROUND_S if low <= tick <= 1.5 * high])
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        ax.set_xlim(0, 100 if column == "accuracy_start" else 1.4 * float(values.max()))
        ax.locator_params(axis="x", nbins=4)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(text(value)) if value else "0"))


def _row(
    ax: Axes, row: int, of_seeds: pd.DataFrame, column: str, colour: str, text: Callable[[float], str]
) -> None:
    """Draw a variant's mean with its value, and its seeds."""
    if of_seeds.empty:
        return
    values = of_seeds[column].to_numpy(float)
    mean, begin = float(values.mean()), ax.get_xlim()[0]
    ax.barh(row, mean - begin, 0.5, left=begin, color=colour, alpha=0.85, zorder=2)
    if len(values) > 1:
        look: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 0.7}
        ax.plot(values, np.full(len(values), row), "o", markersize=3.6, zorder=4, linestyle="none", **look)
    words = f"{'> ' if of_seeds['missed'].any() else ''}{text(mean)}"
    end = float(max(values.max(), mean))
    inside = column == "accuracy_start" and end > 80
    ax.annotate(
        words,
        (begin if inside else end, row),
        xytext=(5, 0),
        textcoords="offset points",
        va="center",
        fontsize=10.5,
        fontweight="bold",
        color="white" if inside else INK,
        annotation_clip=False,
        zorder=5,
    )


def duration(seconds: float) -> str:
    """Write a time as a person says it: `1.65 s`, `20.0 min`, `5.50 h`."""
    unit, size = next(one for one in (("h", 3600.0), ("min", 60.0), ("s", 0.0)) if seconds >= one[1])
    return f"{amount(seconds / (size or 1.0))} {unit}"


def short(words: str) -> str:
    """Leave out zeros behind the point: `1.00 min` as `1 min`."""
    return re.sub(r"\.0+(?= )", "", words)
