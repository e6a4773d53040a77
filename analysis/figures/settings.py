"""The figure of a study's grid: a panel per session, a row per setting, a mark per variant."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import DPI, INK, SOFT, variant_styles
from analysis.results import SettingsTable
from analysis.tables.settings import caption, setting_names

ROW_INCH, PANEL_INCH, MARGIN_INCH = 0.26, 3.1, 1.0
MARKS = "oDsv^P"
WIDEST = 6  # panels side by side; a page does not hold more


def settings_figure(settings: SettingsTable) -> Figure:
    """Draw the accuracy of each variant in each setting; whiskers are one standard deviation over seeds."""
    sessions = settings.sessions[:WIDEST]
    names = setting_names(settings)
    width = 2.6 + PANEL_INCH * len(sessions)
    height = 2 * MARGIN_INCH + ROW_INCH * len(names)
    figure = Figure(figsize=(width, height), dpi=DPI)
    panels = figure.subplots(1, len(sessions), sharey=True, squeeze=False)[0]
    for panel, session in zip(panels, sessions, strict=True):
        _draw(panel, settings, session, len(names))
    panels[0].set_yticks(range(len(names)), names, fontsize=8)
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9)
    figure.text(0.012, 1 - 0.22 / height, caption(settings), fontsize=11, fontweight="bold", color=INK)
    figure.subplots_adjust(
        left=2.4 / width,
        right=1 - 0.2 / width,
        top=1 - 0.75 / height,
        bottom=0.85 / height,
        wspace=0.06,
    )
    return figure


def _draw(ax: Axes, settings: SettingsTable, session: int, rows: int) -> None:
    of_session = settings.table[settings.table["session"] == session]
    places = np.arange(rows)
    for row in places[::2]:
        ax.axhspan(row - 0.5, row + 0.5, color="#f5f6f8", linewidth=0, zorder=0)
    for number, (name, style) in enumerate(variant_styles(settings.variants, settings.reference).items()):
        emphasised = name == settings.reference
        ax.errorbar(
            100 * of_session[f"{name}_mean"],
            places,
            xerr=100 * of_session[f"{name}_std"].fillna(0),
            linestyle="none",
            marker=MARKS[number % len(MARKS)],
            markersize=6.5 if emphasised else 5,
            color=style["color"],
            elinewidth=0.9,
            label=name,
            zorder=style["zorder"],
        )
    ax.set_title(f"session {session}", fontsize=9.5, color=INK, loc="left")
    ax.set_xlabel("accuracy (%)", fontsize=9)
    ax.tick_params(length=0, labelsize=8, colors=SOFT)
    ax.grid(axis="x", color="#e1e4e8", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ax.spines.values():
        side.set_visible(False)
