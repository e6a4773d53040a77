"""Accuracy over simulated time and over joules, at column width."""

import math

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import SOFT, legend, panels, series_styles
from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.results import Comparison
from edgefl.analysis.measures.service import Services, step
from edgefl.analysis.page.formatting import ENERGY_UNITS, TIME_UNITS, unit_for

POINTS = 400  # number of points of a line
Curve = tuple[np.ndarray, np.ndarray, np.ndarray]  # x, mean, std; NaN while a seed has no model yet


def curves_figure(comparison: Comparison, services: Services) -> Figure:
    """Draw the accuracy of each variant's latest tested model, with a band of one standard deviation over seeds."""
    rounds, variants = comparison.rounds, list(comparison.table["variant"])
    figure, axes = panels(2, 4.2, sharey=True)
    worst = float(rounds["accuracy"].min())
    lowest = 0 if worst < 0.4 else 10 * math.floor(10 * worst) - 5
    curves = {name: curves_of(rounds[rounds["variant"] == name], services) for name in variants}
    for number, (ax, units, words) in enumerate(
        zip(axes, (TIME_UNITS, ENERGY_UNITS), ("simulated time", "energy of all devices"), strict=True)
    ):
        unit, size = unit_for([float(curves[name][number][0].max()) for name in variants], units)
        for name, style in series_styles(variants).items():
            x, mean, std = curves[name][number]
            look = {"color": style["color"], "zorder": 4}
            ax.plot(x / size, 100 * mean, linewidth=1.2, label=name, linestyle=style["linestyle"], **look)
            if np.isfinite(std).any():
                low, high = 100 * (mean - std), 100 * (mean + std)
                ax.fill_between(x / size, low, high, alpha=0.2, linewidth=0, color=style["color"])
        ax.set_xlim(left=0)
        ax.margins(x=0)
        ax.set_xlabel(f"{words} ({unit})")
        ax.set_ylabel("test accuracy (%)")
        ax.set_ylim(lowest, 100)
    of_first = rounds[rounds["variant"] == variants[0]]
    starts_s = of_first.groupby(["session", "seed"])["start_s"].min().groupby("session").mean()
    _, size = unit_for([float(curves[name][0][0].max()) for name in variants], TIME_UNITS)
    for start_s in starts_s.iloc[1:] if len(starts_s) <= 12 else []:
        axes[0].axvline(start_s / size, color=SOFT, linewidth=0.5, linestyle=":", zorder=1)
    legend(figure, axes[0])
    return figure


def curves_of(rounds: pd.DataFrame, services: Services) -> tuple[Curve, Curve]:
    """Average a variant's accuracy over seeds, at equal times and at equal joules (`metrics.spent_in_run`).

    An accuracy is valid until the end of the next tested round. Cells are averaged within a seed, weighted by the
    devices that they serve, and their joules are summed. A curve ends where the first of the runs ends.
    """
    own = []
    for key, run in rounds.groupby(metrics.RUN):
        run = run.sort_values("end_s")
        own.append((run, metrics.spent_in_run(run), services[key]))
    times_s = np.linspace(0, min(float(run["end_s"].max()) for run, _, _ in own), POINTS)
    joules = np.linspace(0, min(float(spent_j[-1]) for _, spent_j, _ in own), POINTS)
    by_time = [service.accuracy(run, times_s) for run, _, service in own]
    by_energy = [
        service.accuracy(run, step(spent_j, run["end_s"].to_numpy(), joules)) for run, spent_j, service in own
    ]
    return _averaged(times_s, np.stack(by_time)), _averaged(joules, np.stack(by_energy))


def _averaged(x: np.ndarray, values: np.ndarray) -> Curve:
    std = values.std(axis=0, ddof=1) if len(values) > 1 else np.full(len(x), np.nan)
    return x, values.mean(axis=0), std
