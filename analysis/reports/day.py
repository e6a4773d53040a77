"""Draw a day in one cell: its population, and the accuracy of each variant's model."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.clock import time_axis
from edgefl.analysis.figures.lines import BAND, PILOT, label_lines, write_above
from edgefl.analysis.figures.style import DPI, INK, Styles, heading, plain, variant_styles
from edgefl.analysis.measures.metrics import over_seeds, training_rounds
from edgefl.analysis.measures.scope import SideBySide, jaccard
from edgefl.analysis.page.markup import csv_text
from edgefl.analysis.page.report import Report
from edgefl.analysis.runs.choices import OVERLAP, Overlap, Reference
from edgefl.analysis.runs.clock import Clock, of_day, own_clock
from edgefl.analysis.runs.load import Paths, Runs

DAY_NUMBERS = "day.csv"  # name of the PNG's text with its numbers, hour by hour


def report_day(
    runs: Paths | Runs,
    *,
    out: str | Path | None = None,
    reference: Reference = None,
    cell: Annotated[int, typer.Option(help="Cell to draw.")] = 0,
    overlap: Overlap = OVERLAP,
) -> Report:
    """Draw the accuracy of each variant over the hours of the day, with sessions and population, as day.png.

    The hour at time 0 is the scenario's (`begin_hour`, `day_s`), or midnight.

    Raises:
        ValueError: no such cell, no accuracy, or a folder that cannot be written.
    """
    runs = Runs.of(runs)
    both = SideBySide.of(runs, reference, [])
    rounds = both.rounds[both.rounds["cell"] == cell]
    if rounds.empty:
        known = ", ".join(str(number) for number in sorted(runs.rounds["cell"].unique()))
        raise ValueError(f"no rounds in cell {cell}; cells with a federation: {known}")
    if not rounds["accuracy"].notna().any():
        raise ValueError("no run has an accuracy: a day is drawn only for runs with training")
    some = set(rounds["variant"])
    names = [name for name in both.variants if name in some]
    shown = both.reference or names[0]
    mine = both.sessions[(both.sessions["variant"] == shown) & (both.sessions["cell"] == cell)]
    mine = mine[mine["seed"] == both.seeds[0]].sort_values("session", ignore_index=True)
    members = [frozenset(str(devices).split()) for devices in mine["devices"]]
    pilots = set(rounds.loc[rounds["phase"] == "pilot", "session"])
    clock = own_clock(runs.info.loc[runs.info["variant"] == shown, "path"].iloc[0])
    mine = mine.assign(
        count=[len(some) for some in members],
        pilot=mine["session"].isin(pilots),
        note=_notes(members, [of_day(clock.hours(start_s)) for start_s in mine["start_s"]], overlap),
    )
    day = training_rounds(rounds).dropna(subset=["accuracy"])
    figure = _day_figure(
        day,
        mine,
        variant_styles(names, both.reference),
        clock=clock,
        title=f"The devices in cell {cell}, and the accuracy of its model",
    )
    hours = clock.hours(day["start_s"]).astype(int).rename("hour")
    numbers = day.groupby(["variant", hours])[["accuracy", "participants", "energy_j"]].mean().round(4)
    return Report(
        runs.folder(out),
        score=runs.score,
        look=[("Figure", "day.png")],
        figures={"day": figure},
        pdf=False,
        inside={DAY_NUMBERS: csv_text(numbers.reset_index())},
    ).write()


def _notes(members: list[frozenset[str]], begun: list[str], overlap: float) -> list[str]:
    """Note each session's population: that of an earlier session, pilots included, or a new one."""
    notes = []
    for number, mine in enumerate(members):
        alike = [jaccard(mine, others) for others in members[:number]]
        best = max(range(number), key=lambda other: (alike[other], other), default=None)
        seen = best is not None and alike[best] >= overlap
        notes.append(f"same as at {begun[best]}" if seen and best is not None else "new population")
    return notes


SIZE_INCH = (32 / 3, 17 / 3)  # 1600 x 850 pixels
TOP, BOTTOM = (0.058, 0.4, 0.815, 0.42), (0.058, 0.085, 0.815, 0.2)
NARROWEST = 0.055  # least share of the axis for a session to be named


def _day_figure(
    rounds: pd.DataFrame, sessions: pd.DataFrame, styles: Styles, *, clock: Clock, title: str
) -> Figure:
    """Draw accuracy and the devices in a round over the hours of the day, sessions shaded.

    Args:
        rounds: training rounds of one cell: variant, seed, start_s, end_s, accuracy, participants.
        sessions: the sessions of one variant and seed: session, start_s, pilot, count and note.
    """
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    seeds = rounds["seed"].nunique()
    what = "Accuracy of the cell's model, mean over the rounds of ten minutes."
    if seeds > 1:
        what += f" Mean of {seeds} seeds; the sessions shown are the first seed's."
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
    """Shade the sessions, and write number, devices and note above the longer ones."""
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
