"""The course of the network at column width: handovers, devices in service and round times over simulated time."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.column import SMALL, legend, panels, series_styles
from edgefl.analysis.figures.style import SOFT
from edgefl.analysis.formatting import TIME_UNITS, unit_for

MOST_SERIES = 5  # lines that can be told apart
FEW = 40  # places of a line, up to which they are marked


def network_figure(course: pd.DataFrame) -> Figure | None:
    """Draw the network's course over time, variants as lines; band: a deviation over seeds. None: there is no course.

    Handovers have a panel where there are any, devices in service where their number changes.

    Args:
        course: of `edgefl.analysis.network.over_time`.
    """
    names = list(dict.fromkeys(course["variant"]))[:MOST_SERIES]
    course = course[course["variant"].isin(names)]
    kinds = []
    if course["handovers_per_hour"].gt(0).any():
        kinds.append("handovers_per_hour")
    if course.groupby(["variant", "seed"])["in_service"].agg(np.ptp).gt(1e-9).any():
        kinds.append("in_service")
    if course["round_s"].notna().any():
        kinds.append("round_s")
    if not kinds:
        return None
    figure, axes = panels(len(kinds), 0.6 + 1.35 * len(kinds), sharex=True)
    unit, size = unit_for(course["time_s"], TIME_UNITS)
    styles = series_styles(names)
    for ax, kind in zip(axes, kinds, strict=True):
        label, scale = _label(kind, course)
        for name, style in styles.items():
            own = course[course["variant"] == name]
            _line(ax, own, kind, size, scale, style | {"label": name})
            if kind == "handovers_per_hour" and own["ping_pongs_per_hour"].gt(0).any():
                thin = style | {"linestyle": ":", "linewidth": 0.8, "marker": None, "label": None}
                _line(ax, own, "ping_pongs_per_hour", size, scale, thin)
        ax.set_ylabel(label)
        ax.set_ylim(bottom=0)
        ax.margins(x=0)
    if kinds[0] == "handovers_per_hour" and course["ping_pongs_per_hour"].gt(0).any():
        axes[0].set_title("dotted: ping-pong", fontsize=SMALL - 1, color=SOFT, loc="right", pad=2)
    axes[-1].set_xlim(0, (course["time_s"].max() + course["time_s"].min()) / size)
    axes[-1].set_xlabel(f"simulated time ({unit})")
    figure.align_ylabels(axes)
    legend(figure, axes[0])
    return figure


def _label(kind: str, course: pd.DataFrame) -> tuple[str, float]:
    """Say what an axis shows, and in which size of its unit."""
    if kind == "round_s":
        unit, size = unit_for(course["round_s"], TIME_UNITS)
        return f"round time ({unit})", size
    return {"handovers_per_hour": "handovers per hour", "in_service": "devices in service"}[kind], 1.0


def _line(ax: Axes, own: pd.DataFrame, kind: str, size: float, scale: float, style: dict) -> None:
    """Draw the mean over seeds of one variant, and its deviation."""
    over_seeds = (own.groupby("time_s")[kind].agg(["mean", "std"]) / scale).dropna(subset="mean")
    x, mean, std = over_seeds.index / size, over_seeds["mean"], over_seeds["std"]
    mark = {"markersize": 2.4, "markeredgewidth": 0.4} if len(x) <= FEW else {"marker": None}
    ax.plot(x, mean, **{"linewidth": 1.1, "zorder": 4, **style, **mark})
    if std.notna().any():
        look = {"color": style["color"], "alpha": 0.2, "linewidth": 0}
        ax.fill_between(x, np.maximum(mean - std, 0), mean + std, **look)
