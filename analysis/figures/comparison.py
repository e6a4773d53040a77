"""Draw a comparison: accuracy over time and the cost of a target or, without training, latency and energy."""

import math

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.clock import draw_by_clock
from edgefl.analysis.figures.lines import (
    curve_of,
    curve_over_time,
    draw_lines,
    label_lines,
    pilots_matter,
    session_bands,
    with_elapsed,
)
from edgefl.analysis.figures.style import INK, Styles, heading, note, plain, styles_of
from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.averages import bounded
from edgefl.analysis.measures.results import RECURRING, Comparison
from edgefl.analysis.measures.scope import own_seeds
from edgefl.analysis.measures.service import Services
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    TIME_UNITS,
    Units,
    amount,
    lower_bound,
    ranges,
    unit_for,
)

SIZE_INCH, DPI = (8.0, 5.6), 200  # 1600 x 1120 pixels, legible on a slide and a phone
MOST_BARS = 40
CLOCK = (0.075, 0.485, 0.79, 0.375)
TOP, LEFT, RIGHT = (0.075, 0.485, 0.79, 0.335), (0.075, 0.075, 0.4, 0.2), (0.575, 0.075, 0.4, 0.2)


def adaptation_figure(comparison: Comparison, services: Services) -> Figure:
    """Draw accuracy over rounds or the time of day, and the cost of reaching the target in each session in scope."""
    figure, styles = Figure(figsize=SIZE_INCH, dpi=DPI), styles_of(comparison.table, comparison.reference)
    if comparison.clock is None:
        circles = "Open circles: accuracy before a session's first training round."
        title = "Test accuracy on the labels present, over time"
        heading(figure, 0.965, title, _spread(comparison) + circles)
        _accuracy(figure.add_axes(TOP), comparison, styles)
    else:
        first, rounds, runs = next(iter(styles)), comparison.rounds, comparison.runs
        ours = (runs.sessions["variant"] == first) & (runs.sessions["seed"] == comparison.seeds[0])
        (seed,) = own_seeds(runs.info[runs.info["variant"] == first], comparison.seeds[:1])
        cells = "Cells are weighted by the devices that they serve. " if rounds["cell"].nunique() > 1 else ""
        of = f" of {first}" if len(styles) > 1 else ""
        when = "by time of day" if comparison.clock.begin_hour is not None else "over time"
        ticks = f"{cells}Ticks mark where a session{of} begins (seed {seed})."
        heading(figure, 0.965, f"Test accuracy of the models in use, {when}", _spread(comparison) + ticks)
        draw_by_clock(figure, CLOCK, rounds, runs.sessions[ours], services, styles, comparison.clock)

    if comparison.target is None:
        _round_costs(figure, comparison, styles)
        return figure
    probes = "probe rounds and " if comparison.detail["probe_rounds"].gt(0).any() else ""
    missed = comparison.table["not_reached"].any()
    hatched = " Hatched bars: the target was not reached by the end of the session." if missed else ""
    again = "Sessions whose labels were seen before. " if comparison.scope == RECURRING else ""
    means = _spread(comparison, "whiskers")
    explained = (
        f"{again}{means}Counted from the start of the session, {probes}last radio tails included.{hatched}"
    )
    goal = comparison.target.named(comparison.reference, len(comparison.table) == 1)
    heading(figure, 0.365, f"Cost of reaching {goal}", explained)
    _cost_bars(figure.add_axes(LEFT), comparison, styles, "seconds_to_target", ("simulated time", TIME_UNITS))
    _cost_bars(figure.add_axes(RIGHT), comparison, styles, "joules_to_target", ("energy", ENERGY_UNITS))
    return figure


def cost_figure(comparison: Comparison) -> Figure:
    """Draw each round's latency, and a round's mean cost, for runs without training."""
    figure, styles = Figure(figsize=SIZE_INCH, dpi=DPI), styles_of(comparison.table, comparison.reference)
    explained = "Latency of the slowest device, for which a synchronous round waits."
    training = metrics.training_rounds(comparison.rounds)
    seeds = training.groupby(["variant", "session", "round"])["seed"].nunique()
    if seeds.groupby(["variant", "session"]).nunique().gt(1).any():
        explained = "Latency of the slowest device; later rounds: of the seeds that had them."
    heading(figure, 0.965, "Latency of each round", _spread(comparison) + explained)
    top = figure.add_axes(TOP)
    lengths = training.groupby("session")["round"].max()
    starts = session_bands(top, comparison.per_session, lengths, pilots=False)
    top.set_xlabel("round", labelpad=2)
    top.locator_params("x", integer=True)
    time, seconds = unit_for(comparison.table["latency_s_mean"], TIME_UNITS)
    curves = {name: curve_of(comparison.rounds, name, "latency_s", starts) for name in styles}
    for curve in curves.values():
        curve[["mean", "std"]] /= seconds
    draw_lines(top, curves, styles)
    top.set_ylabel(f"latency ({time})")
    top.set_ylim(bottom=0)
    label_lines(top, curves, styles)
    _round_costs(figure, comparison, styles)
    return figure


def _round_costs(figure: Figure, comparison: Comparison, styles: Styles) -> None:
    time, seconds = unit_for(comparison.table["latency_s_mean"], TIME_UNITS)
    means = f"{_spread(comparison, 'whiskers')}A seed's mean covers all rounds except probe rounds."
    heading(figure, 0.365, "Cost of a round", means)
    latency = figure.add_axes(LEFT)
    names = {"latency_s": "slowest device", "latency_mean_s": "mean over devices"}
    draw_bars(latency, _averages(comparison, names, seconds), list(names.values()), styles)
    latency.set_ylabel(f"latency ({time})")
    energy = figure.add_axes(RIGHT)
    unit, joules = unit_for(comparison.table["round_energy_j_mean"], ENERGY_UNITS)
    parts = {"": "all", "_rx": "receive", "_tx": "transmit", "_compute": "compute", "_tail": "tails"}
    names = {f"round_energy{part}_j": name for part, name in parts.items()}
    draw_bars(energy, _averages(comparison, names, joules), list(names.values()), styles)
    energy.set_ylabel(f"energy ({unit})")


def _spread(comparison: Comparison, sign: str = "band") -> str:
    n = len(comparison.seeds)
    return f"Mean of {n} seeds, {sign} ± 1 standard deviation. " if n > 1 else ""


def _accuracy(ax: Axes, comparison: Comparison, styles: Styles) -> None:
    """Draw accuracy over the time since each session's start, with sessions side by side."""
    runs = comparison.runs
    rounds = with_elapsed(comparison.rounds, runs.sessions)
    last_s = rounds.groupby(["variant", "session", "seed"])["elapsed_s"].max()
    lengths = last_s.groupby(["variant", "session"]).mean().groupby("session").max()
    unit, size = unit_for([float(lengths.sum())], TIME_UNITS)
    rounds["elapsed"] = rounds["elapsed_s"] / size
    starts = session_bands(ax, comparison.per_session, lengths / size, pilots=pilots_matter(runs.sessions))
    longest = ", each session as long as its slowest variant" if len(styles) > 1 and len(starts) > 1 else ""
    ax.set_xlabel(f"simulated time ({unit}){longest}", labelpad=2)
    curves = {}
    for name, style in styles.items():
        of_variant = comparison.detail[comparison.detail["variant"] == name]
        before = of_variant.assign(accuracy=of_variant["accuracy_start"], elapsed=0.0)
        after = rounds[rounds["variant"] == name]
        columns = [*metrics.SPELL, "elapsed", "accuracy"]
        curve = curve_over_time(pd.concat([before[columns], after[columns]]), starts)
        curve[["mean", "std"]] *= 100
        curves[name] = curve
        opened = 100 * metrics.over_seeds(of_variant, ["session"], "accuracy_start")["mean"]
        opened = opened[opened >= 0]  # an R2 below 0 is off the axis
        ax.plot(
            opened.index.map(starts),
            opened,
            linestyle="none",
            marker="o",
            markersize=7.0 if style["linewidth"] > 2 else 4.2,
            markerfacecolor="white",
            markeredgecolor=style["color"],
            markeredgewidth=1.3,
            zorder=style["zorder"] + 1,
            clip_on=False,
        )
    draw_lines(ax, curves, styles)
    ax.set_ylabel("test accuracy (%)")
    lowest = pd.concat(curves)["mean"].min()  # a variant may have no accuracy
    ax.set_ylim((0 if lowest < 40 else 10 * math.floor(lowest / 10) - 5), 100)
    label_lines(ax, curves, styles)


def _cost_bars(ax: Axes, comparison: Comparison, styles: Styles, cost: str, words: tuple[str, Units]) -> None:
    """Draw the cost of each session to reach the target, or the mean over all sessions if there are many.

    A session that missed the target counts with its whole length.
    """
    detail = bounded(comparison.detail)
    scope = detail[detail["in_scope"] & detail["targets"]]
    groups = [f"session {session}" for session in comparison.sessions]
    place = scope["session"].map({session: i for i, session in enumerate(comparison.sessions)})
    if comparison.clock is not None or len(groups) * len(styles) > MOST_BARS:
        groups, place = [_scope_words(comparison)], place * 0
    elif len(groups) > 6:
        groups = [str(session) for session in comparison.sessions]
        ax.set_xlabel("session", labelpad=1)
    spent = scope[f"{cost}_at_least"]
    unit, size = unit_for(spent, words[1])
    sessions = scope[["variant", "seed", "missed"]].assign(group=place, spent=spent / size)
    by_seed = sessions.groupby(["variant", "group", "seed"]).agg(
        spent=("spent", "mean"), missed=("missed", "sum")
    )
    bars = by_seed.groupby(["variant", "group"]).agg(
        mean=("spent", "mean"), std=("spent", "std"), missed=("missed", "sum")
    )
    draw_bars(ax, bars.reset_index(), groups, styles)
    ax.set_ylabel(f"{words[0]} ({unit})")


def _scope_words(comparison: Comparison) -> str:
    """Describe the sessions averaged in a bar: by their numbers or, if runs have a clock, only by their count."""
    if comparison.clock is None:
        return f"mean of sessions {ranges(comparison.sessions)}"
    many, _ = comparison.in_scope
    return f"mean of {many} sessions" if many > 1 else "one session"


def _averages(comparison: Comparison, names: dict[str, str], size: float) -> pd.DataFrame:
    """Turn columns of the comparison's table into bars, with columns variant, group, mean, std and missed."""
    table = comparison.table
    parts = []
    for group, column in enumerate(names):
        mean, std = table[f"{column}_mean"] / size, table[f"{column}_std"] / size
        parts.append(table[["variant"]].assign(group=group, mean=mean, std=std, missed=0))
    return pd.concat(parts)


MOST_BARS_WITH_VALUES = 12
WIDEST_BAR, WIDEST_SHARE = 0.4, 0.16  # maximum width of a bar, as a share of the group and of the axis


def draw_bars(ax: Axes, bars: pd.DataFrame, groups: list[str], styles: Styles) -> None:
    """Draw grouped bars, with values if there is room; a bar is hatched if a session missed the target."""
    plain(ax, grid=True)
    width, order = min(0.8 / len(styles), WIDEST_BAR), list(styles)
    for bar in bars.itertuples():
        x = bar.group + (order.index(bar.variant) - (len(order) - 1) / 2) * width
        colour, open_ended = styles[bar.variant]["color"], bar.missed > 0
        hatched = {"facecolor": "white", "edgecolor": colour, "hatch": "/////"}
        look = hatched if open_ended else {"color": colour}
        ax.bar(x, bar.mean, width * 0.92, linewidth=0.9, zorder=3, **look)
        spread = bar.std if bar.std > 0 else 0.0
        if spread:
            ax.errorbar(x, bar.mean, spread, color=INK, linewidth=0.9, zorder=5)
        if len(bars) <= MOST_BARS_WITH_VALUES:
            known = "< 0.0001" if 0 < bar.mean < 1e-4 else amount(bar.mean)
            text = f">{lower_bound(bar.mean)}" if open_ended else known
            top = (x, bar.mean + spread)
            note(ax, text, top, (0, 2), ha="center")
    middle, half = (len(groups) - 1) / 2, max(len(groups) / 2, width / (2 * WIDEST_SHARE))
    ax.set_xlim(middle - half, middle + half)
    room = 0.94 * width / (2 * half) * ax.bbox.width
    for value in ax.texts:
        shrunk = min(1.0, room / value.get_window_extent().width)
        value.set_fontsize(float(value.get_fontsize()) * shrunk)
    ax.set_xticks(range(len(groups)), groups)
    ax.margins(y=0.14)
    ax.set_ylim(bottom=0)
