"""The figures of a comparison, drawn without pyplot so that they need no display and leave no state."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis import metrics, tables

if TYPE_CHECKING:
    from analysis.comparison import Comparison

SIZE_INCH, DPI = (32 / 3, 20 / 3), 150  # 1600 x 1000 pixels
# Okabe and Ito's colour-blind-safe palette, the reference's blue first; yellow left out, unreadable on white
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00", "#56B4E9", "#000000"]
DASHES: list[Any] = ["-", (0, (5, 1.5)), (0, (1.5, 1.2))]  # for more variants than colours
INK, SOFT, BAND, PILOT = "#222222", "#666666", "#f0f2f4", "#fcf3df"
MOST_BARS, MOST_BARS_WITH_VALUES = 40, 18
WIDEST_BAR, WIDEST_SHARE = 0.4, 0.09  # of its group, and of the axis: few bars stay slim
MOST_SESSIONS_WITH_LABELS = 10
KIND_WORDS = {"pilot": "pilot", "new": "new labels", "recurring": "labels seen before"}
LABEL_GAP = 0.075  # least distance of two line labels, as a share of the axis
TOP, LEFT, RIGHT = (0.058, 0.465, 0.815, 0.38), (0.058, 0.075, 0.425, 0.2), (0.552, 0.075, 0.425, 0.2)

SUBTITLE: dict[str, Any] = {"loc": "left", "fontsize": 9, "color": INK, "pad": 8}

Styles = dict[str, dict[str, Any]]


def adaptation_figure(comparison: Comparison, rounds: pd.DataFrame) -> Figure:
    """Accuracy over training rounds, and below it what each session of the scope paid to reach the target."""
    figure, styles = Figure(figsize=SIZE_INCH, dpi=DPI), _styles(comparison)
    _title(
        figure,
        0.965,
        "Test accuracy on the labels present, round by round",
        f"{_spread(comparison)}Open circles: the model that opens a session, before any training in it.",
    )
    _accuracy(figure.add_axes(TOP), comparison, rounds, styles)

    probes = ", probe rounds included" if comparison.detail["probe_rounds"].gt(0).any() else ""
    missed = comparison.table["not_reached"].any()
    hatched = " Hatched: not reached by the end of the session." if missed else ""
    again = "Sessions whose labels were seen before. " if comparison.scope == tables.RECURRING else ""
    explained = f"{again}Counted from the start of the session{probes}.{hatched}"
    _title(figure, 0.365, f"What it takes to reach {_goal(comparison)}", explained)
    time = _cost_bars(figure.add_axes(LEFT), comparison, styles, "seconds", "session_s", tables.TIME_UNITS)
    time.set_title(f"simulated time ({time.get_label()})", **SUBTITLE)
    energy = _cost_bars(
        figure.add_axes(RIGHT), comparison, styles, "joules", "session_j", tables.ENERGY_UNITS
    )
    energy.set_title(f"energy of all devices ({energy.get_label()})", **SUBTITLE)
    return figure


def cost_figure(comparison: Comparison, rounds: pd.DataFrame) -> Figure:
    """For runs without training: each round's latency, and what a round costs on average."""
    figure, styles = Figure(figsize=SIZE_INCH, dpi=DPI), _styles(comparison)
    explained = "The slowest device's latency, which a synchronous round waits for."
    _title(figure, 0.965, "Latency of each round", _spread(comparison) + explained)
    top = figure.add_axes(TOP)
    starts = _session_bands(top, comparison, rounds)
    time, seconds = tables.unit_for(comparison.table["latency_s_mean"], tables.TIME_UNITS)
    curves = {name: _curve(rounds, name, "latency_s", starts) for name in styles}
    for curve in curves.values():
        curve[["mean", "std"]] /= seconds
    _draw_lines(top, curves, styles)
    top.set_ylabel(f"latency ({time})")
    top.set_ylim(bottom=0)
    _label_lines(top, curves, styles)

    _title(figure, 0.365, "What a round costs", "Mean over all rounds but probe rounds.")
    latency = figure.add_axes(LEFT)
    names = {"latency_s": "slowest device", "latency_mean_s": "mean over devices"}
    _draw_bars(latency, _averages(comparison, names, seconds), list(names.values()), styles)
    latency.set_title(f"latency ({time})", **SUBTITLE)
    energy = figure.add_axes(RIGHT)
    unit, joules = tables.unit_for(comparison.table["round_energy_j_mean"], tables.ENERGY_UNITS)
    parts = {"": "all", "_rx": "receive", "_tx": "transmit", "_compute": "compute"}
    names = {f"round_energy{part}_j": name for part, name in parts.items()}
    _draw_bars(energy, _averages(comparison, names, joules), list(names.values()), styles)
    energy.set_title(f"energy of all devices ({unit})", **SUBTITLE)
    return figure


def variant_styles(names: Sequence[str], emphasised: str | None) -> Styles:
    """Colour, dash and weight of every variant, the emphasised one first."""
    styles = {}
    others = 0 if emphasised else -1
    for name in names:
        if name == emphasised:
            styles[name] = {"color": PALETTE[0], "linestyle": "-", "linewidth": 2.4, "zorder": 6}
            others = 0
            continue
        colours = PALETTE[1:]
        colour, dash = colours[others % len(colours)], DASHES[others // len(colours) % len(DASHES)]
        styles[name] = {"color": colour, "linestyle": dash, "linewidth": 1.5, "zorder": 4}
        others += 1
    return styles


def _spread(comparison: Comparison) -> str:
    n = len(comparison.seeds)
    return f"Mean of {n} seeds, band ± 1 standard deviation. " if n > 1 else ""


def _goal(comparison: Comparison) -> str:
    share = tables.percent_of(comparison.target)
    if len(comparison.table) == 1:
        return f"{share} % of the session's best accuracy"
    whose = comparison.reference or "the best variant"
    return f"{share} % of {whose}'s best accuracy in the session"


def _styles(comparison: Comparison) -> Styles:
    emphasised = comparison.reference or (
        comparison.table["variant"][0] if len(comparison.table) == 1 else None
    )
    return variant_styles(list(comparison.table["variant"]), emphasised)


def _title(figure: Figure, height: float, title: str, explained: str) -> None:
    figure.text(0.012, height, title, fontsize=12.5, fontweight="bold", color=INK, va="center")
    figure.text(0.012, height - 0.031, explained, fontsize=9, color=SOFT, va="center")


def _accuracy(ax: Axes, comparison: Comparison, rounds: pd.DataFrame, styles: Styles) -> None:
    starts = _session_bands(ax, comparison, rounds)
    curves = {}
    for name, style in styles.items():
        curve = _curve(rounds, name, "accuracy", starts)
        own = comparison.detail[comparison.detail["variant"] == name]
        opening = metrics.over_seeds(own, ["session"], "accuracy_start")
        opening["x"] = opening.index.map(starts)
        # round 0 of a session stands at the same place as the last round of the one before: a vertical drop
        curve = pd.concat([curve, opening.reset_index().assign(round=0)]).sort_values(["session", "round"])
        curve[["mean", "std"]] *= 100
        curves[name] = curve
        opened = curve[curve["round"] == 0]
        ax.plot(
            opened["x"],
            opened["mean"],
            linestyle="none",
            marker="o",
            markersize=5.5 if style["linewidth"] > 2 else 4.2,
            markerfacecolor="white",
            markeredgecolor=style["color"],
            markeredgewidth=1.3,
            zorder=style["zorder"] + 1,
            clip_on=False,
        )
    _draw_lines(ax, curves, styles)
    ax.set_ylabel("test accuracy (%)")
    lowest = min((curve["mean"].min() for curve in curves.values()), default=0)
    ax.set_ylim((0 if lowest < 40 else 10 * math.floor(lowest / 10) - 5), 100)
    _label_lines(ax, curves, styles)


def _curve(rounds: pd.DataFrame, variant: str, column: str, starts: pd.Series) -> pd.DataFrame:
    """Mean and deviation over seeds of a column, per session and training round, at its place x on the axis."""
    training = metrics.training_rounds(rounds)
    own = training[training["variant"] == variant]
    curve = metrics.over_seeds(own, ["session", "round"], column).reset_index()
    curve["x"] = curve["session"].map(starts) + curve["round"]
    return curve


def _draw_lines(ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles) -> None:
    """One line per session, and a thin one between sessions, so that the jumps do not outweigh the curves."""
    for name, curve in curves.items():
        style = styles[name]
        ax.plot(curve["x"], curve["mean"], **style | {"linewidth": 0.8, "alpha": 0.6, "zorder": 3})
        for _, spell in curve.groupby("session"):
            ax.plot(spell["x"], spell["mean"], solid_capstyle="round", **style)
            if spell["std"].notna().any():
                low, high = spell["mean"] - spell["std"], spell["mean"] + spell["std"]
                ax.fill_between(spell["x"], low, high, color=style["color"], alpha=0.2, linewidth=0, zorder=2)
    ax.set_xlabel("training round", labelpad=2)


def _session_bands(ax: Axes, comparison: Comparison, rounds: pd.DataFrame) -> pd.Series:
    """Shade the sessions, name them above the axis, and say after how many rounds each begins."""
    lengths = metrics.training_rounds(rounds).groupby("session")["round"].max()
    ends = lengths.cumsum()
    starts = ends - lengths
    _plain(ax)
    ax.set_xlim(0, ends.iloc[-1])
    sessions = comparison.per_session.set_index("session")
    detailed = len(starts) <= MOST_SESSIONS_WITH_LABELS
    if detailed:
        ax.set_xticks([0, *ends])
    every = math.ceil(len(starts) / 40)
    for number, (session, start) in enumerate(starts.items()):
        end, about = ends[session], sessions.loc[session]
        pilot = about["kind"] == "pilot"
        colour = PILOT if pilot else BAND if number % 2 else "white"
        ax.axvspan(start, end, color=colour, linewidth=0, zorder=0)
        if number:
            ax.axvline(start, color="#c9ced3", linewidth=0.8, zorder=1)
        words = [f"session {session}"] if detailed else [f"{session}", "pilot" if pilot else ""]
        if detailed:
            labels = tables.compact_labels(about["labels"])
            again = " (again)" if about["kind"] == "recurring" else " (pilot)" if pilot else ""
            known = labels and labels != tables.DIFFER
            words.append(f"labels {labels}{again}" if known else KIND_WORDS[about["kind"]])
        if number % every == 0:
            for line, word in enumerate(reversed(words)):
                ax.annotate(
                    word,
                    ((start + end) / 2, 1),
                    xytext=(0, 4 + 11 * line),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",
                    ha="center",
                    fontsize=8 if line else 7.5,
                    fontweight="bold" if line == len(words) - 1 else "normal",
                    color=INK if line else SOFT,
                )
    return starts


def _label_lines(ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles) -> None:
    """Name each line at its right end, in its colour, moved apart where lines end together."""
    low, high = ax.get_ylim()
    gap = LABEL_GAP * (high - low)
    known = {name: curve["mean"].dropna() for name, curve in curves.items()}
    ends = {name: float(means.iloc[-1]) for name, means in known.items() if len(means)}
    names = sorted(ends, key=lambda name: ends[name])
    places = np.array([ends[name] for name in names])
    for _ in range(50):  # push close neighbours apart until none is close
        for i in range(len(places) - 1):
            overlap = gap - (places[i + 1] - places[i])
            if overlap > 0:
                places[i] -= overlap / 2
                places[i + 1] += overlap / 2
    if len(places):
        places -= max(places[-1] - high, 0)
        places += max(low - places[0], 0)
    right = ax.get_xlim()[1]
    for name, place in zip(names, places, strict=True):
        colour, heavy = styles[name]["color"], styles[name]["linewidth"] > 2
        ax.plot([right, right * 1.013], [ends[name], place], color=colour, linewidth=0.8, clip_on=False)
        ax.text(
            right * 1.017,
            place,
            name,
            va="center",
            fontsize=max(6.5, min(10, 10 * 17 / len(name))),
            fontweight="bold" if heavy else "normal",
            color=colour,
        )


def _cost_bars(
    ax: Axes,
    comparison: Comparison,
    styles: Styles,
    quantity: str,
    length: str,
    units: tuple[tuple[str, float], ...],
) -> Axes:
    """What each session, or all of them on average if they are many, spent to reach the target.

    A session that missed it stands for its whole length. The unit chosen becomes the label of the axes.
    """
    scope = comparison.detail[comparison.detail["in_scope"] & comparison.detail["rounds_to_target"].notna()]
    groups = [f"session {session}" for session in comparison.sessions]
    place = scope["session"].map({session: i for i, session in enumerate(comparison.sessions)})
    if len(groups) * len(styles) > MOST_BARS:
        groups, place = [f"mean of sessions {tables.numbers(comparison.sessions)}"], place * 0
    elif len(groups) > 6:
        groups = [str(session) for session in comparison.sessions]
        ax.set_xlabel("session", labelpad=1)
    missed = np.isinf(scope["rounds_to_target"])
    spent = scope[f"{quantity}_to_target"].mask(missed, scope[length])
    unit, size = tables.unit_for(spent, units)
    sessions = pd.DataFrame(
        {
            "variant": scope["variant"],
            "seed": scope["seed"],
            "group": place,
            "spent": spent / size,
            "missed": missed,
        }
    )
    by_seed = sessions.groupby(["variant", "group", "seed"]).agg(
        spent=("spent", "mean"), missed=("missed", "sum")
    )
    bars = by_seed.groupby(["variant", "group"]).agg(
        mean=("spent", "mean"), std=("spent", "std"), missed=("missed", "sum")
    )
    ax.set_label(unit)
    _draw_bars(ax, bars.reset_index(), groups, styles)
    return ax


def _averages(comparison: Comparison, names: dict[str, str], size: float) -> pd.DataFrame:
    """Columns of the comparison's table as bars: variant, group, mean, std, missed."""
    table = comparison.table
    parts = []
    for group, column in enumerate(names):
        mean, std = table[f"{column}_mean"] / size, table[f"{column}_std"] / size
        parts.append(
            pd.DataFrame({"variant": table["variant"], "group": group, "mean": mean, "std": std, "missed": 0})
        )
    return pd.concat(parts)


def _draw_bars(ax: Axes, bars: pd.DataFrame, groups: list[str], styles: Styles) -> None:
    """Grouped bars with their values, if there is room; one that missed the target somewhere is hatched."""
    _plain(ax, grid=True)
    width, order = min(0.8 / len(styles), WIDEST_BAR), list(styles)
    for bar in bars.itertuples():
        x = bar.group + (order.index(bar.variant) - (len(order) - 1) / 2) * width
        colour, open_ended = styles[bar.variant]["color"], bar.missed > 0
        look = (
            {"facecolor": "white", "edgecolor": colour, "hatch": "/////"} if open_ended else {"color": colour}
        )
        ax.bar(x, bar.mean, width * 0.92, linewidth=0.9, zorder=3, **look)
        spread = bar.std if bar.std > 0 else 0.0
        if spread:
            ax.errorbar(x, bar.mean, spread, color=INK, linewidth=0.9, zorder=5)
        if len(bars) <= MOST_BARS_WITH_VALUES:
            text = f"{'>' if open_ended else ''}{tables.amount(bar.mean)}"
            top = (x, bar.mean + spread)
            ax.annotate(text, top, (0, 2), textcoords="offset points", ha="center", fontsize=7, color=INK)
    middle, half = (len(groups) - 1) / 2, max(len(groups) / 2, width / (2 * WIDEST_SHARE))
    ax.set_xlim(middle - half, middle + half)
    ax.set_xticks(range(len(groups)), groups)
    ax.margins(y=0.14)


def _plain(ax: Axes, grid: bool = False) -> None:
    """Axes with as little ink as possible."""
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
