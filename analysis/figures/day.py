"""The figure of a day in one cell: who is there, and how well the model serves them, by the hour."""

import math
from dataclasses import replace

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.clock import Clock
from edgefl.analysis.figures.clock import time_axis
from edgefl.analysis.figures.lines import BAND, PILOT, label_lines, write_above
from edgefl.analysis.figures.style import DPI, INK, Styles, heading, plain
from edgefl.analysis.metrics import over_seeds

SIZE_INCH = (32 / 3, 17 / 3)  # 1600 x 850 pixels
TOP, BOTTOM = (0.058, 0.4, 0.815, 0.42), (0.058, 0.085, 0.815, 0.2)
NARROWEST = 0.055  # share of the axis from which on a session is named


def day_figure(
    rounds: pd.DataFrame, sessions: pd.DataFrame, styles: Styles, *, clock: Clock, title: str
) -> Figure:
    """Draw accuracy and the devices in a round over the hours of the day, sessions shaded.

    Args:
        rounds: training rounds of one cell: variant, seed, start_s, end_s, accuracy, participants.
        sessions: of one variant and seed, with session, start_s, pilot, count and note of each.
    """
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    seeds = rounds["seed"].nunique()
    what = "Accuracy of the cell's model, mean over the rounds of ten minutes."
    if seeds > 1:
        what += f" Mean of {seeds} seeds; sessions of the first one."
    heading(figure, 0.96, title, what)
    top, bottom = figure.add_axes(TOP), figure.add_axes(BOTTOM)
    for ax in (top, bottom):
        plain(ax)
    last_s = float(rounds["end_s"].max())
    time_axis((top, bottom), replace(clock, begin_hour=clock.begin_hour or 0.0), last_s)
    _sessions((top, bottom), sessions, clock, last_s)

    curves, people = {}, {}
    for name in styles:
        mine = rounds[rounds["variant"] == name]
        hours = clock.hours(mine["start_s"])
        tenth = (hours * 6).map(math.floor) / 6 + 1 / 12
        mine = mine.assign(x=tenth)
        curves[name] = 100 * over_seeds(mine, ["x"], "accuracy").rename_axis("x")
        people[name] = over_seeds(mine, ["x"], "participants")["mean"]
    for name, curve in curves.items():
        top.plot(curve.index, curve["mean"], **styles[name])
    top.set_ylabel("test accuracy (%)")
    lowest = min(curve["mean"].min() for curve in curves.values())
    top.set_ylim(10 * math.floor(lowest / 10), 100)
    label_lines(top, {name: curve.dropna(subset=["mean"]) for name, curve in curves.items()}, styles)
    who = next(iter(people.values()))
    bottom.fill_between(who.index, who, step="mid", color="#c9ced3", linewidth=0, zorder=2)
    bottom.step(who.index, who, where="mid", color=INK, linewidth=1.0, zorder=3)
    bottom.set_ylim(bottom=0)
    bottom.set_ylabel("devices in a round")
    return figure


def _sessions(axes: tuple[Axes, Axes], sessions: pd.DataFrame, clock: Clock, last_s: float) -> None:
    """Shade the sessions; write number, devices and note of the longer ones above them."""
    first_h, last_h = clock.hours(0.0), clock.hours(last_s)
    starts = [clock.hours(start_s) for start_s in sessions["start_s"]]
    for number, (start, end, row) in enumerate(
        zip(starts, [*starts[1:], last_h], sessions.itertuples(), strict=True)
    ):
        for ax in axes:
            ax.axvspan(start, end, color=PILOT if row.pilot else BAND if number % 2 else "white", zorder=0)
            if number:
                ax.axvline(start, color="#c9ced3", linewidth=0.8, zorder=1)
        if end - start < NARROWEST * (last_h - first_h):
            continue
        note = "pilot" if row.pilot else row.note
        write_above(axes[0], (start + end) / 2, (f"session {row.session}", f"{row.count} devices", note))
