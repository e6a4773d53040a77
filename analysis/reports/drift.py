"""Report runs under concept drift by paper F's metrics, and the seconds and joules until a model has recovered."""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Annotated

import numpy as np
import pandas as pd
import typer
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from edgefl.analysis.figures.style import DPI, EDGE, INK, SOFT, Styles, heading, note, plain, styles_of
from edgefl.analysis.measures.averages import Costs
from edgefl.analysis.measures.drift import (
    SAMPLES,
    SETTLED,
    TAIL,
    Reading,
    drift_figures,
    drifted_share,
    numbered,
    participants,
)
from edgefl.analysis.measures.metrics import RUN
from edgefl.analysis.measures.scope import SideBySide, own_seeds
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    amount,
    named_seeds,
    spreads,
    unit_for,
)
from edgefl.analysis.page.markup import bullets, latex_table, page, picture, section
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import MARGIN, SMOOTH, Names, Out, Partial, Recovery, Reference, Weights
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_runs

By = Annotated[Weights, typer.Option(help="Average accuracies over devices, or over test samples.")]
First = Annotated[
    int, typer.Option("--from", help="First round to search for the dip; 1 is the drift's first round.")
]
Last = Annotated[
    int | None, typer.Option("--to", help="Last round to search for the dip. Default: up to the next change.")
]
Recovered = Annotated[
    Recovery,
    typer.Option(
        help="When the model has recovered. level: accuracy is back to its value before the drift or at "
        "the end, whichever is lower; plateau: accuracy stops rising."
    ),
]
Margin = Annotated[
    float, typer.Option(help="Accuracy by which a model may miss the level, or still rise (plateau).")
]

FALLEN = 0.05  # a larger loss of accuracy through a drift is noted
EPOCHS = (
    f"Epochs are those of all participants together, per round, in up to {TAIL} rounds before the drift and after its"
    " last step. Personal: accuracy of the participants' own models after local training."
)


def compare_drift(
    *runs: Paths | Runs,
    partial: Partial = False,
    names: Names = (),
    out: Out = None,
    reference: Reference = None,
    by: By = "devices",
    window: Annotated[int, typer.Option(help="Rounds to average over for the dip.")] = 1,
    first: First = 1,
    last: Last = None,
    recovery: Recovered = "level",
    smooth: Annotated[int, typer.Option(help="Rounds to average over for recovery.")] = SMOOTH,
    margin: Margin = MARGIN,
) -> Report:
    """Compare a study's variants under concept drift, and write drift.csv, drift_runs.csv, drift.md, .tex, .png.

    Raises:
        ValueError: no run is completed, the runs have no drift, no seed is common to all variants, the runs lack a
            column that the reading needs, or the folder cannot be written.
    """
    reading = Reading(by, window, first, last, recovery, smooth, margin)
    given = given_runs(runs, load_runs, names=names, partial=partial)
    _refuse_without_drift(given, by)
    notes = given.said()
    both = SideBySide.of(given, reference, notes)
    rounds = numbered(both.rounds)
    devices = given.devices[given.devices["seed"].isin(both.seeds)]
    detail = drift_figures(rounds, participants(devices, reading), reading)
    if detail.empty:
        raise ValueError(
            f"no device's data drift in the runs in {given.path}: lower learning.drift.at, which is after "
            "the runs' end"
        )
    notes += _on_final(detail, rounds, recovery)
    values = [name for name in detail.columns if name not in (*RUN, "cell", "change")]
    some = set(detail["variant"])
    variants = [name for name in both.variants if name in some]
    table = Costs.of(detail, values, ["change"]).table(values, variants, ("mean", "std"))
    title = f"Concept drift ({named_seeds(both.seeds, own=own_seeds(both.info, both.seeds))})"
    changes = {words: _headline(table, change) for change, words in _change_names(detail).items()}
    sentences = [*reading.words(), EPOCHS, *noted(notes)]
    sections = [section(words, shown, "variant") for words, shown in changes.items()]
    latex = [latex_table(f"{title}, {words}", shown, "variant") for words, shown in changes.items()]
    return Report(
        given.folder(out),
        score=given.score,
        caption=title,
        tables=[(words, shown.T) for words, shown in changes.items()],
        sentences=sentences,
        look=[("Figure", "drift.png")],
        emphasised=both.reference,
        numbers={"drift.csv": table, "drift_runs.csv": detail},
        texts={
            "drift.md": page(title, *sections, bullets(sentences), picture("drift")),
            "drift.tex": "\n".join(latex),
        },
        figures={"drift": drift_figure(table, rounds, both.reference)},
        pdf=False,
    ).write()


def _on_final(detail: pd.DataFrame, rounds: pd.DataFrame, recovery: Recovered) -> Iterator[str]:
    """Note final accuracies that include a dip, and those far below the accuracy before the drift."""
    each = [*RUN, "cell"]
    ends = detail.groupby(each)["first_round"].shift(-1) - 1
    lasts = detail.join(rounds.groupby(each)["number"].max(), on=each)["number"]
    follows = ends.fillna(lasts) - detail["last_round"] + 1
    follow = follows.min()
    if follow < SETTLED:
        yield (
            f"the last step of a drift is followed by only {follow:.0f} rounds, not {SETTLED}: `final` and the next"
            " change's `before` average half of them, in which the model may not have settled"
        )
    missed = np.isinf(detail["recovery_rounds"]).groupby([detail["variant"], detail["change"]])
    for (name, change), row in missed.agg(["sum", "count"]).iterrows():
        if 0 < row["sum"] < row["count"]:
            yield (
                f"{name}: after change {change}, {row['sum']} of {row['count']} runs have not recovered, so the"
                " mean is ∞; drift_runs.csv has each run"
            )
    found = (follows >= SETTLED) & np.isfinite(detail["recovery_rounds"])
    lost = detail[found].groupby("variant")[["before", "final"]].mean().eval("before - final")
    for name, points in lost.items():
        if recovery == "level" and points > FALLEN:
            yield (
                f"{name}: the final accuracy is {100 * points:.0f} points below that before the drift, so recovery"
                " refers to the final accuracy"
            )


def _refuse_without_drift(given: Runs, by: Weights) -> None:
    """Refuse runs without drift, or without the accuracies that `by` needs."""
    if "drifted" not in given.rounds:
        raise ValueError(f"the runs in {given.path} have no concept drift: set learning.drift")
    if by == "samples" and SAMPLES not in given.rounds:
        raise ValueError(
            f"the runs in {given.path} have no {SAMPLES}: run them again with learning.evaluation.tested_on: "
            "devices, or choose --by devices"
        )


def _spells_of(rounds: pd.DataFrame) -> list[tuple[int, int, float]]:
    """List spells of rounds with drifted devices: first and last round, and the mean share of devices over runs."""
    share = drifted_share(rounds).groupby(rounds["number"]).mean().bfill().ffill().fillna(0.0)
    edges = [0, *(np.flatnonzero(np.diff(share.to_numpy())) + 1).tolist(), len(share)]
    spells = [(begin + 1, end, float(share.iloc[begin])) for begin, end in pairwise(edges)]
    return [spell for spell in spells if spell[2] > 0]


# heading -> column of shares
ACCURACIES = {
    "before (%)": "before",
    "dip (%)": "dip",
    "1 round (%)": "after_1",
    "10 rounds (%)": "after_10",
    "40 rounds (%)": "after_40",
    "80 rounds (%)": "after_80",
    "final (%)": "final",
    "spread over devices (%)": "deviation_final",
    "personal before (%)": "personal_before",
    "personal dip (%)": "personal_dip",
    "personal final (%)": "personal_final",
}


def _change_names(detail: pd.DataFrame) -> dict[int, str]:
    """Name each change of concept by the rounds in which the change happens, the mean over runs and cells."""
    names = {}
    for change, rows in detail.groupby("change"):
        first, last = rows["first_round"].mean(), rows["last_round"].mean()
        where = f"round {first:.0f}" if first == last else f"rounds {first:.0f} to {last:.0f}"
        differ = rows[["first_round", "last_round"]].nunique().gt(1).any()
        names[int(str(change))] = f"change {change}, {'about ' * bool(differ)}{where}"
    return names


def _headline(table: pd.DataFrame, change: int) -> pd.DataFrame:
    """Write a row per variant for one change of concept; columns without any number are left out."""
    rows = table[table["change"] == change].set_index("variant")
    time, seconds = unit_for(rows["recovery_s_mean"], TIME_UNITS)
    energy, joules = unit_for(rows["recovery_j_mean"], ENERGY_UNITS)
    columns = {
        **{title: spreads(rows, name, decimals=2, scale=100) for title, name in ACCURACIES.items()},
        "recovery (rounds)": spreads(rows, "recovery_rounds", decimals=0),
        f"recovery ({time})": spreads(rows, "recovery_s", size=seconds),
        f"recovery ({energy})": spreads(rows, "recovery_j", size=joules),
        "epochs before": [amount(mean, 1) for mean in rows["epochs_before_mean"]],
        "epochs after": [amount(mean, 1) for mean in rows["epochs_after_mean"]],
    }
    shown = pd.DataFrame(columns, index=rows.index)
    return shown.loc[:, (shown != NOTHING).any()]


SIZE_INCH = (32 / 3, 20 / 3)  # 1600 x 1000 pixels
TOP, BOTTOM = (0.058, 0.545, 0.735, 0.345), (0.058, 0.075, 0.735, 0.36)
DRIFTED = "#fcf3df"
SMOOTHED = 200  # number of points of a line, at most doubled, as 1,000 rounds would look like noise
BEFORE = 0.15  # share of the time axis that shows the time before the drift
ROUNDING = 0.005  # shares that differ by less are written alike
Spell = tuple[int, int, float]  # first and last round, share of drifted devices


def drift_figure(table: pd.DataFrame, rounds: pd.DataFrame, reference: str | None) -> Figure:
    """Draw the mean accuracy of each variant; the legend orders the variants by recovery."""
    first, styles = table[table["change"] == 1].set_index("variant"), styles_of(table, reference)
    back, many = first["recovery_rounds_mean"], rounds["seed"].nunique()
    spells = _spells_of(rounds)
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    window = max(1, int(rounds["number"].max()) // SMOOTHED)
    curves = {name: _curve(rounds, name, window, spells) for name in styles}
    how = [f"Mean of {many} seeds."] if many > 1 else []
    how += [f"Running mean over {window} rounds, never across a drift."] if window > 1 else []
    shares = drifted_share(rounds).groupby([rounds["variant"], rounds["number"]]).mean().unstack(0)
    alike = bool((shares.max(axis=1) - shares.min(axis=1) < ROUNDING).all())
    written = (
        "on the share of devices written above" if alike else "on shares of devices that differ by variant"
    )
    how.append(f"Shaded rounds: data have drifted {written}.")
    heading(figure, 0.968, "Test accuracy through concept drift", " ".join(how))
    top, bottom = figure.add_axes(TOP), figure.add_axes(BOTTOM)
    _panel(top, curves, styles, "number")
    top.set_xlim(0, max(float(curve["number"].max()) for curve in curves.values()))
    top.set_xlabel("training round", labelpad=2)
    top.locator_params("x", integer=True)
    _mark(top, spells, named=alike)
    begins = first["first_round_mean"].reindex(list(styles)).fillna(spells[0][0])
    _over_time(bottom, curves, styles, begins, first["last_round_mean"] + back)
    _legend(figure, styles, back, "recovery (rounds)" + ",\nchange 1" * (table["change"].nunique() > 1))
    return figure


def _curve(rounds: pd.DataFrame, variant: str, window: int, spells: Sequence[Spell]) -> pd.DataFrame:
    """Return number, accuracy (%), start_s and end_s of a variant's tested rounds, smoothed within each concept."""
    of_variant = rounds[rounds["variant"] == variant]
    means = of_variant.groupby("number")[["accuracy", "start_s", "end_s"]].mean().dropna().reset_index()
    edges = sorted({edge for first, last, _ in spells for edge in (first, last + 1)})
    concept = np.searchsorted(edges, means["number"], side="right")
    smooth = means.groupby(concept)["accuracy"].rolling(window, min_periods=1).mean()
    means["accuracy"] = 100 * smooth.droplevel(0)
    return means


def _panel(ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles, x: str) -> None:
    plain(ax)
    for name, curve in curves.items():
        style = styles[name] | {"linewidth": styles[name]["linewidth"] * 0.75}
        ax.plot(curve[x], curve["accuracy"], **style)
    ax.set_ylim(0, 100)
    ax.set_ylabel("test accuracy (%)")


def _over_time(
    ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles, begins: pd.Series, back: pd.Series
) -> None:
    """Draw accuracy over the time since the drift, up to twice the longest time that a variant took to recover.

    Args:
        begins: variant -> number of the drift's first round, the mean over seeds and cells.
        back: variant -> number of the round in which the variant has recovered; inf if it never recovered.
    """
    ends, shifted = [], {}
    for name, curve in curves.items():
        after = curve[curve["number"] >= begins[name]]
        zero = float(after["start_s"].iloc[0]) if len(after) else float(curve["end_s"].iloc[-1])
        shifted[name] = curve.assign(since=curve["end_s"] - zero)
        until = after[after["number"] <= back.get(name, math.inf)]
        if len(until):
            ends.append((float(until["end_s"].iloc[-1]) - zero) * 2)
    longest = max(float(curve["since"].max()) for curve in shifted.values())
    shown = min(max(ends, default=longest), longest)
    unit, seconds = unit_for([shown], TIME_UNITS)
    _panel(ax, {name: c.assign(since=c["since"] / seconds) for name, c in shifted.items()}, styles, "since")
    ax.set_xlim(-BEFORE * shown / seconds, shown / seconds)
    ax.axvline(0, color=EDGE, linewidth=0.8, zorder=1)
    ax.set_xlabel(f"simulated time since the drift's first round began ({unit})", labelpad=2)


def _legend(figure: Figure, styles: Styles, back: pd.Series, title: str) -> None:
    """Draw a legend of the variants with the rounds after which each has recovered, the fastest variant first."""
    # inf comes last, followed by NaN
    names = sorted(styles, key=lambda name: (math.isnan(back.get(name, math.nan)), back.get(name, math.inf)))
    lines = [Line2D([], [], **styles[name]) for name in names]
    texts = [f"{name}  ({amount(float(back.get(name, math.nan)), 0)})" for name in names]
    legend = figure.legend(
        lines,
        texts,
        title=title,
        loc="upper left",
        bbox_to_anchor=(TOP[0] + TOP[2] + 0.006, TOP[1] + TOP[3] + 0.012),
        frameon=False,
        fontsize=9 if len(names) <= 20 else 7,
        title_fontsize=9,
        alignment="left",
        handlelength=2.6,
    )
    legend.get_title().set_color(SOFT)
    for name, text in zip(names, legend.get_texts(), strict=True):
        text.set_color(INK)
        text.set_fontweight("bold" if styles[name]["linewidth"] > 2 else "normal")


def _mark(ax: Axes, spells: Sequence[Spell], *, named: bool) -> None:
    """Shade the rounds in which data have drifted; write each share if there is room and variants share it."""
    length, last_named = ax.get_xlim()[1], -math.inf
    for first, last, share in spells:
        ax.axvspan(first, last + 1, color=DRIFTED, alpha=0.35 + 0.65 * share, linewidth=0, zorder=0)
        ax.axvline(first, color=EDGE, linewidth=0.8, zorder=1)
        if not named or first - last_named < 0.045 * length:
            continue
        last_named = first
        words = f"{100 * share:.0f} %" + (" drifted" if last + 1 - first > 0.12 * length else "")
        note(ax, words, (first, 1), (3, 4), top=True, color=SOFT)
