"""Draw metrics against one key, or a map of two keys, at column width."""

import textwrap

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import INK, SMALL, legend, mark, panels, series_styles
from edgefl.analysis.measures.results import Sweep
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import shown_ends
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, Units, amount, lower_bound, unit_for
from edgefl.analysis.page.units import axis_of
from edgefl.analysis.runs.choices import FIRST_ROUNDS, Layout

UNITS: dict[str, Units] = {
    "seconds_to_target": TIME_UNITS,
    "joules_to_target": ENERGY_UNITS,
    "latency_s": TIME_UNITS,
    "round_energy_j": ENERGY_UNITS,
    "rounds_to_target": (("rounds", 1.0),),
    "accuracy_first": (("%", 0.01),),
}
LOGARITHMIC = 50.0  # an axis is logarithmic from this ratio of largest to smallest value
MOST_ABOVE = 2.5  # whiskers stretch the axis up to this multiple of the largest mean
DODGE = 0.012  # share of an axis between series
WIDEST_LABEL = 24  # characters in a line of the label beside a panel
MISSED = "open: target missed, a lower bound"
MOST_MAPS = 4  # number of maps stacked in a column


def words_of(cost: str, target: Target | None) -> str:
    """Return a metric's name for a figure, without unit."""
    plain = {
        "latency_s": "round latency",
        "round_energy_j": "energy per round",
        "accuracy_first": f"accuracy of the first rounds, at most {FIRST_ROUNDS}",
    }
    if cost in plain or target is None:
        return plain[cost]
    kind = {"seconds": "time", "joules": "energy"}.get(cost.partition("_")[0], "rounds")
    return f"rounds to {target.short}" if kind == "rounds" else f"{kind} from session start to {target.short}"


def label_of(cost: str, target: Target | None, unit: str) -> str:
    """Return a metric's axis label, its name with its unit."""
    words = words_of(cost, target)
    return words if unit == "rounds" else f"{words} ({unit})"


def sweep_figure(sweep: Sweep) -> Figure:
    """Draw metrics against the swept key, with intervals as whiskers; lower bounds are open marks without a line."""
    figure, axes = panels(len(sweep.costs), 0.6 + 1.7 * len(sweep.costs), sharex=True)
    key = sweep.keys[0]
    label, size = axis_of(key, sweep.table[key])
    styles = series_styles(list(dict.fromkeys(sweep.table["series"])))
    for ax, cost in zip(axes, sweep.costs, strict=True):
        means = means_of(sweep.table, cost)
        unit, scale = unit_for(means, UNITS[cost])
        for name, style in styles.items():
            rows = sweep.table[sweep.table["series"] == name].sort_values(key)
            # side by side, since one series would hide the whisker of another series with equal values
            shift = DODGE * (list(styles).index(name) - (len(styles) - 1) / 2)
            spread = float(sweep.table[key].max() - sweep.table[key].min()) / size
            x, y = rows[key] / size + shift * spread, means_of(rows, cost) / scale
            reached = ~lower_bounds(rows, cost).to_numpy()
            look = {"color": style["color"], "zorder": 4, "markersize": 0}
            ax.plot(x, y.where(reached), linewidth=1.2, linestyle=style["linestyle"], **look)
            ax.plot([], [], label=name, linewidth=1.2, markersize=4.2, **style)
            lengths = _whiskers(rows, cost, sweep.layout) / scale
            ax.errorbar(x, y, yerr=lengths, linestyle="none", elinewidth=0.8, capsize=2, **look)
            mark(ax, x.to_numpy(), y.to_numpy(), style, reached)
        tallest, tops = float(means.max()), means + _whiskers(sweep.table, cost, sweep.layout)[1]
        # with two seeds a whisker may be many times the mean; cutting it off keeps the curves from being flat
        ax.set_ylim(0, min(1.08 * float(tops.max()), MOST_ABOVE * tallest) / scale)
        ax.set_ylabel(textwrap.fill(label_of(cost, sweep.target, unit), WIDEST_LABEL))
    values = sorted(sweep.table[key].unique() / size)
    if values[0] > 0 and values[-1] / values[0] >= LOGARITHMIC:
        axes[-1].set_xscale("log")
    elif not np.mod(values, 1).any():
        axes[-1].locator_params("x", integer=True)
    if len(values) <= 8:
        axes[-1].set_xticks(values, [f"{value:g}" for value in values])
        axes[-1].minorticks_off()
    axes[-1].set_xlabel(label)
    if any(lower_bounds(sweep.table, cost).any() for cost in sweep.costs):
        axes[0].plot([], [], "o", color=INK, markerfacecolor="white", markersize=4.2, label=MISSED)
    legend(figure, axes[0])
    return figure


def _whiskers(rows: pd.DataFrame, cost: str, layout: Layout) -> np.ndarray:
    """Return whiskers' lengths below and above the means, [2, rows]; 0 if unknown; a cost's whisker ends above 0."""
    if layout.interval:
        means, positive = rows[f"{cost}_mean"].to_numpy(float), cost != "accuracy_first"
        each = zip(means, rows[f"{cost}_ci"], rows["seeds"], strict=True)
        ends = np.array([shown_ends(*one, positive=positive) for one in each], float)
        return np.nan_to_num(np.abs(ends - means[:, None]).T, posinf=1e300)
    return np.array([rows[f"{cost}_{layout.spread}"].fillna(0)] * 2, float)


def means_of(rows: pd.DataFrame, cost: str) -> pd.Series:
    """Return a metric's means, or of a target's cost the lower bounds, which are the means unless it was missed."""
    return rows[f"{cost}_at_least" if cost.endswith("_to_target") else f"{cost}_mean"]


def lower_bounds(rows: pd.DataFrame, cost: str) -> pd.Series:
    """Mark the rows in which a target was missed: only a lower bound of their cost is known."""
    return (rows["not_reached"] > 0) & cost.endswith("_to_target")


def heat_figure(sweep: Sweep) -> Figure:
    """Draw the metric over two keys as one map per series; darker means less, and cells show the numbers."""
    cost = sweep.costs[0]
    names = list(dict.fromkeys(sweep.table["series"]))[:MOST_MAPS]
    across, down = sweep.keys
    shown = sweep.table.assign(shown=means_of(sweep.table, cost))
    unit, scale = unit_for(shown["shown"], UNITS[cost])
    columns, rows = (sorted(sweep.table[key].unique()) for key in sweep.keys)
    figure, axes = panels(len(names), 0.7 + len(names) * (0.55 + 0.3 * len(rows)), sharex=True)
    limits = {"vmin": shown["shown"].min() / scale, "vmax": shown["shown"].max() / scale}
    (x_label, x_size), (y_label, y_size) = axis_of(across, columns), axis_of(down, rows)
    for ax, name in zip(axes, names, strict=True):
        own = shown[shown["series"] == name]
        grid = own.pivot(index=down, columns=across, values="shown").reindex(index=rows, columns=columns)
        bounds = own.assign(lower=lower_bounds(own, cost).astype(int))
        lower = bounds.pivot(index=down, columns=across, values="lower").reindex_like(grid)
        # the lightness of cividis changes evenly, also for colour-blind readers and in greyscale
        image = ax.imshow(grid / scale, cmap="cividis", origin="lower", aspect="auto", **limits)
        middle = (limits["vmin"] + limits["vmax"]) / 2
        for i, j in np.ndindex(grid.shape):
            value = grid.iat[i, j] / scale
            text = f">{lower_bound(value)}" if lower.iat[i, j] > 0 else amount(value)
            ink = "white" if value < middle else "black"
            ax.text(j, i, text, ha="center", va="center", fontsize=SMALL, color=ink)
        ax.grid(False)
        ax.set_xticks(range(len(columns)), [f"{value / x_size:g}" for value in columns])
        ax.set_yticks(range(len(rows)), [f"{value / y_size:g}" for value in rows])
        ax.tick_params(length=0)
        ax.set_ylabel(y_label)
        if len(names) > 1 or name != "all":
            ax.set_title(name, fontsize=SMALL + 0.5, color=INK, loc="left", pad=3)
        for side in ax.spines.values():
            side.set_visible(False)
    axes[-1].set_xlabel(x_label)
    bar = figure.colorbar(image, ax=axes, shrink=0.9, pad=0.02)
    bar.set_label(textwrap.fill(label_of(cost, sweep.target, unit), WIDEST_LABEL), fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    return figure
