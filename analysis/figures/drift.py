"""The figure of concept drift: accuracy over rounds and over simulated time, the drift marked."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.lines import label_lines
from analysis.figures.style import DPI, INK, SOFT, Styles, plain, variant_styles
from analysis.formatting import TIME_UNITS, unit_for
from analysis.results import DriftComparison

SIZE_INCH = (32 / 3, 20 / 3)  # 1600 x 1000 pixels
TOP, BOTTOM = (0.058, 0.53, 0.815, 0.36), (0.058, 0.075, 0.815, 0.36)
DRIFTED = "#fcf3df"
SMOOTHED = 200  # points of a line, at most twice as many: runs of 1,000 rounds are noise otherwise


def drift_figure(
    comparison: DriftComparison, rounds: pd.DataFrame, spells: Sequence[tuple[int, int, float]]
) -> Figure:
    """Draw the mean accuracy of each variant.

    Args:
        rounds: training rounds with their `number`.
        spells: first and last round, and share of drifted devices.
    """
    variants = list(dict.fromkeys(comparison.table["variant"]))
    emphasised = comparison.reference or (variants[0] if len(variants) == 1 else None)
    styles = variant_styles(variants, emphasised)
    figure = Figure(figsize=SIZE_INCH, dpi=DPI)
    window = max(1, int(rounds["number"].max()) // SMOOTHED)
    curves = {name: _curve(rounds, name, window) for name in styles}
    many = len(comparison.seeds)
    how = [f"Mean of {many} seeds."] if many > 1 else []
    how += [f"Running mean of {window} rounds."] if window > 1 else []
    how.append("Shaded: rounds in which data have drifted, and the share of devices.")
    figure.text(
        0.012,
        0.965,
        "Test accuracy through concept drift",
        fontsize=12.5,
        fontweight="bold",
        color=INK,
        va="center",
    )
    figure.text(0.012, 0.934, " ".join(how), fontsize=9, color=SOFT, va="center")
    top, bottom = figure.add_axes(TOP), figure.add_axes(BOTTOM)
    _panel(top, curves, styles, "number", 1.0)
    top.set_xlabel("training round", labelpad=2)
    _mark(top, spells)
    label_lines(
        top, {name: curve.rename(columns={"accuracy": "mean"}) for name, curve in curves.items()}, styles
    )
    unit, seconds = unit_for([float(curve["end_s"].max()) for curve in curves.values()], TIME_UNITS)
    _panel(bottom, curves, styles, "end_s", seconds)
    bottom.set_xlabel(f"simulated time ({unit})", labelpad=2)
    for name, curve in curves.items():
        for first, *_ in spells[:1]:
            begins = curve.loc[curve["number"] >= first]
            if len(begins):
                bottom.plot(
                    begins["end_s"].iloc[0] / seconds,
                    begins["accuracy"].iloc[0],
                    marker="v",
                    markersize=5,
                    color=styles[name]["color"],
                    zorder=7,
                )
    bottom.set_title("Triangles: the round of the drift", loc="left", fontsize=9, color=SOFT, pad=4)
    return figure


def _curve(rounds: pd.DataFrame, variant: str, window: int) -> pd.DataFrame:
    of_variant = rounds[rounds["variant"] == variant]
    means = of_variant.groupby("number")[["accuracy", "end_s"]].mean().dropna().reset_index()
    means["accuracy"] = 100 * means["accuracy"].rolling(window, min_periods=1).mean()
    return means


def _panel(ax: Axes, curves: dict[str, pd.DataFrame], styles: Styles, x: str, size: float) -> None:
    plain(ax)
    for name, curve in curves.items():
        ax.plot(
            curve[x] / size,
            curve["accuracy"],
            **styles[name] | {"linewidth": styles[name]["linewidth"] * 0.75},
        )
    ax.set_xlim(0, max(float(curve[x].max()) for curve in curves.values()) / size)
    ax.set_ylim(0, 100)
    ax.set_ylabel("test accuracy (%)")


def _mark(ax: Axes, spells: Sequence[tuple[int, int, float]]) -> None:
    for first, last, share in spells:
        ax.axvspan(first, last + 1, color=DRIFTED, alpha=0.35 + 0.65 * share, linewidth=0, zorder=0)
        ax.axvline(first, color="#c9ced3", linewidth=0.8, zorder=1)
        ax.annotate(
            f"{100 * share:.0f} % drifted",
            (first, 1),
            xytext=(3, 4),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=7.5,
            color=SOFT,
        )
