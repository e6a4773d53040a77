"""One picture of a run: who moved where, served by whom, and what was learned and spent meanwhile."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import Circle, RegularPolygon

from analysis.figures.style import DPI, INK, PALETTE, SOFT, plain
from analysis.html.packing import unpack
from analysis.html.places import layout_of
from analysis.html.replay import replay_of
from analysis.html.series import timeline
from analysis.load import load_runs
from analysis.scenario_keys import scenario_of
from analysis.vocabulary import HANDOVER

MARKERS = "os^DvPp"
MANY = 150  # handovers


def draw_run(path: str | Path, out: str | Path) -> None:
    """Draw a run's map and, beside it, its accuracy, joules and population.

    Args:
        path: a run directory with positions.
        out: the picture to write; its ending says which kind.

    Raises:
        ValueError: the folder holds no such run, or positions were not recorded.
    """
    runs = load_runs(path)
    if len(runs.info) > 1:
        raise ValueError(f"{path} holds {len(runs.info)} runs: give the folder of one")
    run = next(runs.info.itertuples())
    runs.positions  # noqa: B018  raises where there are none
    with scenario_of(str(run.path)) as scenario:
        layout = layout_of(scenario)
    frames = unpack(replay_of(runs, run)["frames"])
    figure = Figure(figsize=(9.6, 4.9), layout="constrained")
    canvas = FigureCanvasAgg(figure)
    grid = figure.add_gridspec(3, 2, width_ratios=[1.2, 1])
    _map(figure.add_subplot(grid[:, 0]), layout, frames, runs.events)
    lines = timeline(runs, run)
    axes = [figure.add_subplot(grid[row, 1]) for row in range(3)]
    accuracy = "test accuracy, %" + ", mean of the cells" * (not lines["one_cell"])
    _line(axes[0], lines["accuracy"], accuracy, 100.0)
    _line(axes[1], lines["joules"], "joules spent by the devices", 1.0)
    _population(axes[2], frames)
    for one in axes:
        one.set_xlim(0, run.simulated_s)
        for begin_s, _ in lines["sessions"] if lines["one_cell"] else []:
            one.axvline(begin_s, color=SOFT, linewidth=0.7, linestyle=":")
    for one in axes[:2]:
        one.set_xticklabels([])
    axes[2].set_xlabel("simulated time, s")
    canvas.print_figure(Path(out), dpi=DPI)


def _map(axes: Axes, layout: dict[str, Any], frames: dict[str, np.ndarray], events: pd.DataFrame) -> None:
    look: dict[str, Any] = {"fill": False, "edgecolor": "#c3ccd3", "linewidth": 1.2, "zorder": 1}
    for site in layout["sites"]:
        if layout["shape"] == "hexagons":
            axes.add_patch(RegularPolygon(tuple(site), 6, radius=layout["isd_m"] / np.sqrt(3), **look))
    if layout["shape"] == "disc":
        axes.add_patch(Circle((0, 0), layout["radius_m"], **look))
    x_m, y_m, cell = frames["x_m"], frames["y_m"], frames["cell"]
    for device in range(len(x_m)):
        points = np.stack([x_m[device], y_m[device]], axis=-1)
        pieces = np.stack([points[:-1], points[1:]], axis=1)
        whole = np.hypot(*(points[1:] - points[:-1]).T) < 0.5 * layout["radius_m"]  # not: came in elsewhere
        age = np.linspace(0.08, 0.75, len(pieces))
        colours = [
            to_rgba(PALETTE[int(number) % 7] if number >= 0 else SOFT, float(alpha))
            for number, alpha in zip(cell[device][1:], age, strict=True)
        ]
        kept = [colour for colour, fine in zip(colours, whole, strict=True) if fine]
        axes.add_collection(LineCollection(list(pieces[whole]), colors=kept, linewidths=1.1, zorder=2))
    for number in np.unique(cell[:, -1][np.isfinite(cell[:, -1])]).astype(int):
        here = cell[:, -1] == number
        kind = {"marker": MARKERS[number % 7], "color": PALETTE[number % 7]}
        axes.scatter(x_m[here, -1], y_m[here, -1], s=30, edgecolor="white", linewidth=0.7, zorder=4, **kind)
    moved = events[events["event"] == HANDOVER]
    columns = np.searchsorted(frames["time_s"], moved["time_s"]).clip(max=len(frames["time_s"]) - 1)
    rows = moved["device"].to_numpy(int)
    axes.scatter(
        x_m[rows, columns],
        y_m[rows, columns],
        marker="x",
        s=13 * min(1.0, (MANY / max(len(moved), 1)) ** 0.75),  # many stay small, so that the ways can be seen
        color=INK,
        linewidth=0.6,
        alpha=0.6 if len(moved) <= MANY else 0.45,
        zorder=3,
    )
    sites = np.array(layout["sites"])
    axes.scatter(
        sites[:, 0], sites[:, 1], marker="^", s=95, color="white", edgecolor=INK, linewidth=1.3, zorder=5
    )
    crosses = f"; crosses: {len(moved):,} handovers" if len(moved) else ""
    _title(
        axes,
        f"{len(x_m)} devices move among {len(sites)} base station{'s' * (len(sites) > 1)}{crosses}\n"
        "colour and shape: the cell that serves; lines: the way, darker as time goes on",
    )
    axes.set_aspect("equal")
    axes.margins(0.03)
    axes.autoscale_view()
    axes.axis("off")


def _title(axes: Axes, title: str) -> None:
    axes.set_title(title, fontsize=8.5, loc="left", color=INK)


def _line(axes: Axes, line: dict[str, Any], title: str, factor: float) -> None:
    axes.step(line["x"], factor * np.array(line["y"], float), where="post", color=PALETTE[0], linewidth=1.6)
    _title(axes, title)
    plain(axes)


def _population(axes: Axes, frames: dict[str, np.ndarray]) -> None:
    cells = np.unique(frames["cell"][np.isfinite(frames["cell"])]).astype(int)
    for number in cells[:8]:
        count = (frames["cell"] == number).sum(axis=0)
        axes.step(frames["time_s"], count, where="post", color=PALETTE[number % 7], linewidth=1.2)
    _title(axes, "devices in each cell" if len(cells) > 1 else "devices in the cell")
    axes.set_ylim(bottom=0)
    plain(axes)
