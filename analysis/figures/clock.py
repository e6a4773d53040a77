"""Draw each variant's accuracy over time, and below it the number of devices in the cells."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MultipleLocator

from edgefl.analysis.figures.curves import curves_of
from edgefl.analysis.figures.lines import label_lines
from edgefl.analysis.figures.style import EDGE, SOFT, Styles, note, plain, whole
from edgefl.analysis.measures.service import Services
from edgefl.analysis.page.formatting import TIME_UNITS, unit_for
from edgefl.analysis.runs.clock import HOURS, Clock, of_day

POINTS = 400
MOST_TICKS = 13
STEPS_H = (0.25, 0.5, 1, 2, 3, 4, 6, 12, 24, 48, 96, 168)  # possible tick intervals on a time-of-day axis
NARROW = 0.24  # share of the box for the device counts


def draw_by_clock(
    figure: Figure,
    box: tuple[float, float, float, float],
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    services: Services,
    styles: Styles,
    clock: Clock,
) -> None:
    """Draw accuracy over time (cells weighted by devices) with session starts; a panel below shows device counts.

    Args:
        box: left, bottom, width and height as shares of the figure.
        sessions: the sessions of one variant and seed; their starts are marked.
    """
    left, bottom, width, height = box
    top = figure.add_axes((left, bottom + (NARROW + 0.06) * height, width, (0.94 - NARROW) * height))
    below = figure.add_axes((left, bottom, width, NARROW * height), sharex=top)
    curves = {}
    for name in styles:
        x_s, mean, std = curves_of(rounds[rounds["variant"] == name], services)[0]
        curves[name] = pd.DataFrame({"x": x_s, "mean": 100 * mean, "std": 100 * std})
    last_s = max(float(curve["x"].iloc[-1]) for curve in curves.values())
    for ax in (top, below):
        plain(ax)
    place = time_axis((top, below), clock, last_s)
    for name, curve in curves.items():
        x = place(curve["x"].to_numpy())
        top.plot(x, curve["mean"], solid_capstyle="round", **styles[name])
        if curve["std"].notna().any():
            low, high = curve["mean"] - curve["std"], curve["mean"] + curve["std"]
            top.fill_between(x, low, high, color=styles[name]["color"], alpha=0.18, linewidth=0, zorder=2)
    top.tick_params(labelbottom=False)
    top.set_ylabel("test accuracy (%)")
    lowest = min(float(curve["mean"].min()) for curve in curves.values())
    top.set_ylim(max(0, 10 * math.floor((lowest - 2) / 10)), 100)
    label_lines(top, curves, styles)
    begins = place(np.unique(sessions["start_s"].to_numpy(float)))
    top.plot(
        begins, np.full(len(begins), 0.0), "|", color=SOFT, markersize=9, transform=top.get_xaxis_transform(),
        clip_on=False, zorder=5,
    )  # fmt: skip
    times_s = np.linspace(0.0, last_s, POINTS)
    of = services[(sessions["variant"].iloc[0], sessions["seed"].iloc[0])]
    people = np.sum([of.at(int(cell), times_s) for cell in sessions["cell"].unique()], axis=0)
    below.fill_between(place(times_s), people, step="post", color=EDGE, linewidth=0, zorder=2)
    below.set_ylim(0, 1.1 * max(1.0, float(people.max())))
    whole(below)
    below.set_ylabel("devices")


def time_axis(
    axes: Sequence[Axes], clock: Clock, last_s: float, *, ticks: int = MOST_TICKS
) -> Callable[[Any], Any]:
    """Set up the shared time axis, labelled below the last of `axes`; return the map from time to position."""
    below = axes[-1]
    if clock.begin_hour is None:
        unit, size = unit_for([last_s], TIME_UNITS)
        for ax in axes:
            ax.set_xlim(0, last_s / size)
        below.set_xlabel(f"simulated time ({unit})", labelpad=2)
        return lambda time_s: time_s / size
    first, last = clock.hours(0.0), clock.hours(last_s)
    step = next((step for step in STEPS_H if (last - first) / step <= ticks), 168)
    midnights = range(math.ceil(first / HOURS), math.ceil(last / HOURS))
    for ax in axes:
        ax.set_xlim(first, last)
        ax.xaxis.set_major_locator(MultipleLocator(step))
        ax.xaxis.set_major_formatter(FuncFormatter(lambda hour, _: of_day(hour)))
        for midnight in midnights:
            ax.axvline(HOURS * midnight, color="#9aa0a6", linewidth=0.8, zorder=1)
    for midnight in midnights:
        if midnight:
            note(below, f"day {midnight + 1}", (HOURS * midnight, 1), (3, -9), top=True, color=SOFT)
    below.set_xlabel("time of day", labelpad=2)
    return clock.hours
