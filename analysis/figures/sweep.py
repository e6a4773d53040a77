"""The figures of a sweep, at column width: cost against a key, a map of two keys, time against energy."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.column import SMALL, legend, panels, series_styles
from analysis.figures.style import INK, SOFT
from analysis.formatting import ENERGY_UNITS, TIME_UNITS, amount, unit_for
from analysis.results import Sweep
from analysis.units import axis_of

UNITS = {
    "seconds_to_target": TIME_UNITS,
    "joules_to_target": ENERGY_UNITS,
    "latency_s": TIME_UNITS,
    "round_energy_j": ENERGY_UNITS,
}
LOGARITHMIC = 50.0  # ratio of the largest to the smallest value from which on an axis is logarithmic
DODGE = 0.012  # of an axis, from series to series
MOST_MAPS = 4  # below one another in a column


def words_of(cost: str, found: Sweep) -> str:
    """Say what a cost is, without unit."""
    if found.target is None:
        return {"latency_s": "round latency", "round_energy_j": "energy per round"}[cost]
    kind = "time" if cost.startswith("seconds") else "energy"
    return f"{kind} to {found.target.short}"


def sweep_figure(found: Sweep) -> Figure:
    """Draw time and energy against the key; whiskers: 95 % intervals; open marks: a target missed, a lower bound."""
    figure, axes = panels(2, 4.0, sharex=True)
    key = found.keys[0]
    label, size = axis_of(key, found.table[key])
    styles = series_styles(list(dict.fromkeys(found.table["series"])))
    for ax, cost in zip(axes, found.costs, strict=True):
        unit, scale = unit_for(found.table[f"{cost}_mean"], UNITS[cost])
        for name, style in styles.items():
            rows = found.table[found.table["series"] == name].sort_values(key)
            # beside one another: where series agree, one would hide the other's whisker
            shift = DODGE * (list(styles).index(name) - (len(styles) - 1) / 2)
            spread = float(found.table[key].max() - found.table[key].min()) / size
            x, y = rows[key] / size + shift * spread, rows[f"{cost}_mean"] / scale
            ax.errorbar(
                x,
                y,
                yerr=rows[f"{cost}_{found.layout.spread}"].fillna(0) / scale,
                label=name,
                linewidth=1.2,
                elinewidth=0.8,
                capsize=2,
                markersize=0,
                color=style["color"],
                linestyle=style["linestyle"],
                zorder=4,
            )
            missed = rows["not_reached"].to_numpy() > 0
            _marks(ax, x, y, style, ~missed)
        tops = found.table[f"{cost}_mean"] + found.table[f"{cost}_{found.layout.spread}"].fillna(0)
        ax.set_ylim(0, 1.08 * float(tops.max()) / scale)
        ax.set_ylabel(f"{words_of(cost, found)} ({unit})")
    values = sorted(found.table[key].unique() / size)
    if values[0] > 0 and values[-1] / values[0] >= LOGARITHMIC:
        axes[-1].set_xscale("log")
    if len(values) <= 8:
        axes[-1].set_xticks(values, [f"{value:g}" for value in values])
        axes[-1].minorticks_off()
    axes[-1].set_xlabel(label)
    legend(figure, axes[0])
    return figure


def _marks(ax: Axes, x: pd.Series, y: pd.Series, style: dict[str, str], filled: np.ndarray) -> None:
    """Draw marks: filled, or open in the same colour."""
    for face, some in ((style["color"], filled), ("white", ~filled)):
        look: dict[str, Any] = {
            "marker": style["marker"],
            "markersize": 4.2,
            "linestyle": "none",
            "zorder": 5,
        }
        ax.plot(x[some], y[some], markerfacecolor=face, markeredgecolor=style["color"], **look)


def heat_figure(found: Sweep) -> Figure:
    """Draw the time of each pair of values as a map, one for each series: darker is shorter, numbers in the cells."""
    cost = found.costs[0]
    names = list(dict.fromkeys(found.table["series"]))[:MOST_MAPS]
    across, down = found.keys
    unit, scale = unit_for(found.table[f"{cost}_mean"], UNITS[cost])
    columns, rows = (sorted(found.table[key].unique()) for key in found.keys)
    figure, axes = panels(len(names), 0.7 + len(names) * (0.55 + 0.3 * len(rows)), sharex=True)
    finite = found.table[f"{cost}_mean"] / scale
    limits = {"vmin": finite.min(), "vmax": finite.max()}
    (x_label, x_size), (y_label, y_size) = axis_of(across, columns), axis_of(down, rows)
    for ax, name in zip(axes, names, strict=True):
        own = found.table[found.table["series"] == name]
        grid = own.pivot(index=down, columns=across, values=f"{cost}_mean").reindex(
            index=rows, columns=columns
        )
        missed = own.pivot(index=down, columns=across, values="not_reached").reindex_like(grid)
        # cividis: its lightness falls evenly, seen by all eyes and in grey
        image = ax.imshow(grid / scale, cmap="cividis", origin="lower", aspect="auto", **limits)
        middle = (limits["vmin"] + limits["vmax"]) / 2
        for i, j in np.ndindex(grid.shape):
            value = grid.iat[i, j] / scale
            text = f"{'>' if missed.iat[i, j] > 0 else ''}{amount(value)}"
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
    bar.set_label(f"{words_of(cost, found)} ({unit})", fontsize=SMALL)
    bar.ax.tick_params(labelsize=SMALL)
    return figure


def pareto_figure(found: Sweep) -> Figure:
    """Draw time against energy; filled and joined: nothing else is better in both."""
    figure, (ax,) = panels(1, 3.0)
    time, energy = found.costs
    units = {cost: unit_for(found.table[f"{cost}_mean"], UNITS[cost]) for cost in found.costs}
    x = found.table[f"{time}_mean"] / units[time][1]
    y = found.table[f"{energy}_mean"] / units[energy][1]
    best = efficient(x.to_numpy(), y.to_numpy())
    front = sorted(zip(x[best], y[best], strict=True))
    ax.step(*zip(*front, strict=True), where="post", color=SOFT, linewidth=0.8, zorder=2)
    names = list(dict.fromkeys(found.table["series"]))
    for name, style in series_styles(names).items():
        own = (found.table["series"] == name).to_numpy()
        ax.plot([], [], marker=style["marker"], color=style["color"], linestyle="none", label=name)
        _marks(ax, x[own], y[own], style, best[own])
    sizes = [axis_of(key, found.table[key]) for key in found.keys]
    for i, row in found.table.iterrows():
        words = ", ".join(f"{row[key] / size:g}" for key, (_, size) in zip(found.keys, sizes, strict=True))
        right = names.index(row["series"]) % 2 == 0
        ax.annotate(
            words,
            (x[i], y[i]),
            (5, -2) if right else (-5, 2),
            textcoords="offset points",
            ha="left" if right else "right",
            va="top" if right else "bottom",
            fontsize=6,
            color=SOFT,
        )
    ax.set_xlim(left=0, right=float(x.max()) * 1.1)
    ax.set_ylim(bottom=0, top=float(y.max()) * 1.1)
    ax.set_xlabel(f"{words_of(time, found)} ({units[time][0]})")
    ax.set_ylabel(f"{words_of(energy, found)} ({units[energy][0]})")
    ax.set_title(
        f"numbers: {', '.join(label for label, _ in sizes)}", fontsize=6.5, color=SOFT, loc="right", pad=2
    )
    legend(figure, ax)
    return figure


def efficient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Mark the points than which no other is at least as small in both and smaller in one."""
    better = (x[:, None] <= x) & (y[:, None] <= y) & ((x[:, None] < x) | (y[:, None] < y))
    return ~better.any(axis=0) & np.isfinite(x) & np.isfinite(y)
