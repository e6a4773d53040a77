"""Draw the population of one cell over a day, and the accuracy of each variant's model."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from edgefl.analysis.figures.clock import time_axis
from edgefl.analysis.figures.lines import BAND, PILOT, label_lines, pilots_matter, write_above
from edgefl.analysis.figures.style import EDGE, INK, Styles, heading, note, plain, variant_styles, whole
from edgefl.analysis.measures.averages import bounded
from edgefl.analysis.measures.metrics import (
    RUN,
    SESSION,
    accuracy_after_change,
    over_seeds,
    time_to_target,
    training_rounds,
)
from edgefl.analysis.measures.scope import SideBySide, jaccard, population_kinds, scope_of
from edgefl.analysis.measures.targets import BEST, Target, target_of
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, amount, count_of, with_unit
from edgefl.analysis.page.markup import csv_text
from edgefl.analysis.page.report import Report
from edgefl.analysis.runs.choices import OVERLAP, Names, Out, Overlap, Partial, Reference
from edgefl.analysis.runs.clock import Clock, of_day, own_clock
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_runs

SHORTEST_H = 0.5  # hours; a shorter run has too few ten-minute means for a curve
DAY_NUMBERS = "day.csv"  # name of the PNG's text with its numbers, hour by hour


def report_day(
    *runs: Paths | Runs,
    partial: Partial = False,
    names: Names = (),
    out: Out = None,
    reference: Reference = None,
    cell: Annotated[int, typer.Option(help="Cell to draw.")] = 0,
    overlap: Overlap = OVERLAP,
) -> Report:
    """Draw the accuracy of each variant over the hours of the day, with sessions and population, as day.png.

    The hour at time 0 is the scenario's `begin_hour` (with `day_s`), or midnight.

    Raises:
        ValueError: the cell is unknown, no run has an accuracy, the runs are too short for a day, or the folder
            cannot be written.
    """
    given = given_runs(runs, load_runs, names=names, partial=partial)
    both = SideBySide.of(given, reference, [])
    rounds = both.rounds[both.rounds["cell"] == cell]
    if rounds.empty:
        known = ", ".join(str(number) for number in sorted(given.rounds["cell"].unique()))
        raise ValueError(f"no rounds in cell {cell}; cells with rounds: {known}")
    if not rounds["accuracy"].notna().any():
        raise ValueError("no run has an accuracy: a day is drawn only for runs with training")
    variants = [name for name in both.variants if name in set(rounds["variant"])]
    shown = both.reference or variants[0]
    clock = own_clock(given.info.loc[given.info["variant"] == shown, "path"].iloc[0])
    spells = both.sessions[both.sessions["cell"] == cell]
    pilots = set(rounds.loc[rounds["phase"] == "pilot", "session"]) if pilots_matter(both.sessions) else set()
    first = (spells["variant"] == shown) & (spells["seed"] == both.seeds[0])
    own = _described(spells[first], pilots, clock, overlap)
    day = training_rounds(rounds).dropna(subset=["accuracy"])
    last_s = float(day["end_s"].max())
    if clock.hours(last_s) - clock.hours(0.0) < SHORTEST_H:
        raise ValueError(
            f"the rounds in cell {cell} end after {with_unit(last_s, TIME_UNITS)}, but this figure needs a run of "
            "half an hour: draw shorter runs with `edgefl compare`"
        )
    styles = variant_styles(variants, both.reference)
    spent, goal, scope = _openings(rounds, spells, both.reference, overlap)
    openings = spells.groupby(["variant", "session"])[["start_s", "accuracy_start"]].mean().reset_index()
    figure = _day_figure(day, own, openings, styles, clock=clock, cell=cell)
    heading(figure, 0.375, f"Openings of sessions: {scope}", _explained(spent, goal.named(both.reference)))
    _draw_openings(figure, OPENINGS, spent, styles, goal.short)
    hours = clock.hours(day["start_s"]).astype(int).rename("hour")
    numbers = day.groupby(["variant", hours])[["accuracy", "participants", "energy_j"]].mean().round(4)
    return Report(
        given.folder(out),
        score=given.score,
        look=[("Figure", "day.png")],
        figures={"day": figure},
        pdf=False,
        inside={DAY_NUMBERS: csv_text(numbers.reset_index())},
    ).write()


def _described(sessions: pd.DataFrame, pilots: set[int], clock: Clock, overlap: float) -> pd.DataFrame:
    """Add to a variant's sessions the number of devices, whether each is a pilot, and a note on its population."""
    sessions = sessions.sort_values("session", ignore_index=True)
    members = [frozenset(str(devices).split()) for devices in sessions["devices"]]
    return sessions.assign(
        count=[len(some) for some in members],
        pilot=sessions["session"].isin(pilots),
        note=_notes(members, [of_day(clock.hours(start_s)) for start_s in sessions["start_s"]], overlap),
    )


def _notes(members: list[frozenset[str]], begun: list[str], overlap: float) -> list[str]:
    """Note for each session whether its population is that of an earlier session (pilots included), or new."""
    notes = []
    for number, mine in enumerate(members):
        alike = [jaccard(mine, others) for others in members[:number]]
        best = max(range(number), key=lambda other: (alike[other], other), default=None)
        seen = best is not None and alike[best] >= overlap
        notes.append(f"same as at {begun[best]}" if seen and best is not None else "new population")
    return notes


SIZE_INCH, DPI = (8.0, 6.4), 200  # 1600 x 1280 pixels, legible on a slide and a phone
TOP, BOTTOM, OPENINGS = (0.075, 0.6, 0.8, 0.24), (0.075, 0.465, 0.8, 0.085), (0.125, 0.07, 0.845, 0.2)
NARROWEST, NARROW = 0.075, 0.125  # smallest shares of the axis at which a session is labelled, and has a note


def _openings(
    rounds: pd.DataFrame, sessions: pd.DataFrame, reference: str | None, overlap: float
) -> tuple[pd.DataFrame, Target, str]:
    """Measure the openings of a cell's sessions with a returning population, or of all sessions after the pilot.

    Returns:
        A table with accuracy_start in percent, seconds and joules to the target, and missed (if so, seconds and
        joules are lower bounds) by variant and seed; the target; a description of the sessions.
    """
    kinds = population_kinds(rounds, sessions, overlap=overlap)
    scope = scope_of(kinds, [], "population")
    goal = target_of("95%" if reference or rounds["variant"].nunique() == 1 else f"95% of {BEST}")
    times = time_to_target(rounds, sessions, reference=reference, target=goal)
    for part in (accuracy_after_change(rounds, sessions), times):
        kinds = kinds.merge(part, on=SESSION, how="left")
    kinds = bounded(kinds[kinds["in_scope"]])
    kinds = kinds.assign(
        accuracy_start=100 * kinds["accuracy_start"],
        seconds=kinds["seconds_to_target_at_least"],
        joules=kinds["joules_to_target_at_least"],
    )
    means = {name: (name, "mean") for name in ("accuracy_start", "seconds", "joules")}
    return kinds.groupby(RUN).agg(**means, missed=("missed", "any")).reset_index(), goal, scope


def _explained(spent: pd.DataFrame, goal: str) -> str:
    """Explain the figure of the sessions' openings: circles, the target, and marks of missed targets."""
    seeds = f"Means of {spent['seed'].nunique()} seeds (circles). " if spent["seed"].nunique() > 1 else ""
    missed = " >: the target was not reached by the end of a session." if spent["missed"].any() else ""
    return f"{seeds}Target: {goal}.{missed}"


def _day_figure(
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    opened: pd.DataFrame,
    styles: Styles,
    *,
    clock: Clock,
    cell: int,
) -> Figure:
    """Draw accuracy and the devices in a round over the hours of the day, with sessions shaded.

    Args:
        rounds: training rounds of one cell, with columns variant, seed, start_s, end_s, accuracy and participants.
        sessions: the sessions of one variant and seed, with columns session, start_s, pilot, count and note.
        opened: the openings of sessions, with columns variant, start_s and accuracy_start.
    """
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    seeds = rounds["seed"].nunique()
    what = "Lines: means of ten minutes; circles: accuracy at the start of a session, before training."
    if seeds > 1:  # in one line
        what = f"Means of ten minutes and {seeds} seeds; circles: at a session's start; sessions of the first seed."
    heading(figure, 0.967, f"The accuracy of cell {cell}'s model, and the devices in its rounds", what)
    top, bottom = figure.add_axes(TOP), figure.add_axes(BOTTOM)
    for ax in (top, bottom):
        plain(ax)
    last_s = float(rounds["end_s"].max())
    place = time_axis((top, bottom), replace(clock, begin_hour=clock.begin_hour or 0.0), last_s, ticks=11)
    _sessions((top, bottom), sessions, clock, last_s)

    by_tenth = rounds.assign(x=(clock.hours(rounds["start_s"]) * 6).map(math.floor) / 6 + 1 / 12)
    curves, people = (
        {
            name: over_seeds(by_tenth[by_tenth["variant"] == name], ["x"], column).rename_axis("x")
            for name in styles
        }
        for column in ("accuracy", "participants")
    )
    curves = {name: 100 * curve for name, curve in curves.items()}
    for name, style in styles.items():
        drawn = _with_gaps(curves[name]["mean"], math.nan)
        top.plot(drawn.index, drawn, **style)
        own = opened[opened["variant"] == name].dropna()
        look = {"markerfacecolor": "white", "markeredgecolor": style["color"], "zorder": style["zorder"] + 2}
        look |= {"markersize": 6.5 if style["linewidth"] > 2 else 4.5, "clip_on": False}
        top.plot(place(own["start_s"]), 100 * own["accuracy_start"], "o", **look)
    top.set_ylabel("test accuracy (%)")
    top.tick_params(labelbottom=False)
    lowest = min(curve["mean"].min() for curve in curves.values())
    top.set_ylim(max(0, 10 * math.floor(min(lowest, 100 * opened["accuracy_start"].min()) / 10)), 100)
    label_lines(top, {name: curve.dropna(subset=["mean"]) for name, curve in curves.items()}, styles)
    _people(bottom, next(iter(people.values()))["mean"])
    return figure


def _with_gaps(curve: pd.Series, value: float) -> pd.Series:
    """Insert a value where no round took place for three times the usual time, as in a cell without devices.

    Args:
        curve: means by hour, ascending.
    """
    hours = curve.index.to_numpy(float)
    apart = np.diff(hours)
    usual = float(np.median(apart)) if len(apart) else 0.0
    wide = apart > 3 * usual
    edges = np.concatenate([hours[:-1][wide] + usual, hours[1:][wide] - usual])
    return pd.concat([curve, pd.Series(value, index=edges)]).sort_index()


def _people(ax: Axes, devices: pd.Series) -> None:
    """Draw the number of devices in a round over the hours."""
    devices = _with_gaps(devices, 0.0)
    ax.fill_between(devices.index, devices, step="mid", color=EDGE, linewidth=0, zorder=2)
    ax.step(devices.index, devices, where="mid", color=INK, linewidth=1.0, zorder=3)
    whole(ax)
    ax.set_ylabel("devices")


def _sessions(axes: tuple[Axes, Axes], sessions: pd.DataFrame, clock: Clock, last_s: float) -> None:
    """Shade the sessions; write each longer session's number, devices and note above it."""
    first_h, last_h = clock.hours(0.0), clock.hours(last_s)
    starts = [clock.hours(start_s) for start_s in sessions["start_s"]]
    for number, (start, end, row) in enumerate(
        zip(starts, [*starts[1:], last_h], sessions.itertuples(), strict=True)
    ):
        for ax in axes:
            ax.axvspan(start, end, color=PILOT if row.pilot else BAND if number % 2 else "white", zorder=0)
            if number:
                ax.axvline(start, color=EDGE, linewidth=0.8, zorder=1)
        if end - start < NARROWEST * (last_h - first_h):
            continue
        note = "pilot" if row.pilot else row.note * (end - start >= NARROW * (last_h - first_h))
        write_above(
            axes[0], (start + end) / 2, (f"session {row.session}", count_of(row.count, "device"), note)
        )


LOGARITHMIC = 20.0  # an axis is logarithmic from this ratio of largest to smallest mean
ROUND_S = (0.001, 0.01, 0.1, 1.0, 60.0, 3600.0, 86_400.0)
GAP = 0.05  # gap between two panels, as a share of the box


def _draw_openings(
    figure: Figure, box: tuple[float, float, float, float], spent: pd.DataFrame, styles: Styles, target: str
) -> None:
    """Draw a row per variant and a panel per quantity, with means as bars and seeds as small circles.

    Args:
        box: left, bottom, width and height as shares of the figure.
        spent: a row per variant and seed, with columns accuracy_start (in percent), seconds, joules and missed.
        target: the target accuracy up to which seconds and joules are counted.
    """
    left, bottom, width, height = box
    each = (width - 2 * GAP) / 3
    columns: list[tuple[str, str, Callable[[float], str]]] = [
        ("accuracy_start", "accuracy at the start", lambda value: f"{value:.0f} %"),
        ("seconds", f"time from session start\nto {target}", duration),
        ("joules", f"energy from session start\nto {target}", lambda value: with_unit(value, ENERGY_UNITS)),
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
    """Choose a linear axis from 0, or a logarithmic axis if the means differ by a large factor."""
    known = [mean for mean in means if math.isfinite(mean) and mean > 0]
    if column == "seconds" and known and max(known) >= LOGARITHMIC * min(known):
        low, high = 0.5 * float(values[values > 0].min()), float(values.max())
        ax.set_xscale("log")
        ax.set_xlim(low, high * (high / low) ** 0.35)  # leave room for the last value
        ax.set_xticks([tick for tick in ROUND_S if low <= tick <= 1.5 * high])
        ax.xaxis.set_minor_locator(NullLocator())
    else:
        high = 100 if column == "accuracy_start" else 1.4 * float(values.max())
        # ticks at whole minutes or hours, not at 5,000 s
        size = _unit(high)[1] if column == "seconds" else 1.0
        ax.set_xticks([size * tick for tick in MaxNLocator(4).tick_values(0, high / size)])
        ax.set_xlim(0, high)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(text(value)) if value else "0"))


def _row(
    ax: Axes, row: int, of_seeds: pd.DataFrame, column: str, colour: str, text: Callable[[float], str]
) -> None:
    """Draw a variant's mean as a bar with its value, and each seed as a circle."""
    if of_seeds.empty:
        return
    values = of_seeds[column].to_numpy(float)
    mean, begin = float(values.mean()), ax.get_xlim()[0]
    ax.barh(row, mean - begin, 0.5, left=begin, color=colour, alpha=0.85, zorder=2)
    if len(values) > 1:
        look: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 0.7}
        ax.plot(values, np.full(len(values), row), "o", markersize=3.6, zorder=4, linestyle="none", **look)
    # the accuracy at the start does not depend on the target
    bound = column != "accuracy_start" and of_seeds["missed"].any()
    words = f"{'> ' if bound else ''}{text(mean)}"
    end = float(max(values.max(), mean))
    inside = column == "accuracy_start" and end > 80
    bold: dict[str, Any] = {"fontsize": 10.5, "fontweight": "bold", "color": "white" if inside else INK}
    place = (begin if inside else end, row)
    note(ax, words, place, (5, 0), va="center", annotation_clip=False, zorder=5, **bold)


def duration(seconds: float) -> str:
    """Write a duration in the unit that a person would use: `1.65 s`, `20.0 min`, `5.50 h`."""
    unit, size = _unit(seconds)
    return f"{amount(seconds / size)} {unit}"


def _unit(seconds: float) -> tuple[str, float]:
    return next(one for one in (("h", 3600.0), ("min", 60.0), ("s", 1.0)) if seconds >= one[1] or one[1] == 1)


def short(words: str) -> str:
    """Remove zeros after the decimal point: `1.00 min` becomes `1 min`."""
    return re.sub(r"\.0+(?= )", "", words)
