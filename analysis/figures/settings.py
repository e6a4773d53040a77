"""The figure of a study's grid: a panel per session or cost, a row per setting, a mark per variant."""

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import DPI, INK, variant_styles
from edgefl.analysis.results import SettingsTable
from edgefl.analysis.tables.settings import Group, caption, groups, setting_names

ROW_INCH, PANEL_INCH, MARGIN_INCH = 0.26, 3.1, 1.0
LABEL_INCH, CHARACTERS_AN_INCH = 0.075, 9.5  # of a letter beside the panels; of the title
MARKS = "oDsv^P"
DODGE = 0.16  # of a row, between marks of costs: they are often the same, and one would hide the other
WIDEST = 6  # panels side by side; a page does not hold more


def settings_figure(settings: SettingsTable) -> Figure:
    """Draw accuracy, or costs, of each variant in each setting; whiskers are one standard deviation over seeds."""
    shown = groups(settings)[:WIDEST]
    names = setting_names(settings)
    width = 0.5 + LABEL_INCH * max(map(len, names)) + PANEL_INCH * len(shown)
    height = 2 * MARGIN_INCH + ROW_INCH * len(names)
    figure = Figure(figsize=(width, height), dpi=DPI)
    panels = figure.subplots(1, len(shown), sharey=True, squeeze=False)[0]
    for panel, group in zip(panels, shown, strict=True):
        _draw(panel, settings, group)
    panels[0].set_yticks(range(len(names)), names, fontsize=8)
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(
            handles, labels, loc="lower center", ncols=len(labels), frameon=False, fontsize=9, labelcolor=INK
        )
    title = textwrap.wrap(caption(settings), int(CHARACTERS_AN_INCH * width))
    look: dict[str, Any] = {"fontsize": 11, "fontweight": "bold", "color": INK, "va": "top"}
    figure.text(0.1 / width, 1 - 0.12 / height, "\n".join(title), **look)
    figure.subplots_adjust(
        left=(0.25 + LABEL_INCH * max(map(len, names))) / width,
        right=1 - 0.2 / width,
        top=1 - (0.55 + 0.2 * len(title)) / height,
        bottom=(0.85 if len(labels) > 1 else 0.5) / height,
        wspace=0.06,
    )
    return figure


def _draw(ax: Axes, settings: SettingsTable, group: Group) -> None:
    places = np.arange(len(group.means))
    for row in places[::2]:
        ax.axhspan(row - 0.5, row + 0.5, color="#f5f6f8", linewidth=0, zorder=0)
    for number, (name, style) in enumerate(variant_styles(settings.variants, settings.reference).items()):
        emphasised = name == settings.reference
        ax.errorbar(
            group.scale * group.means[name],
            places + (0.0 if settings.trained else DODGE * (number - (len(settings.variants) - 1) / 2)),
            xerr=group.scale * group.stds[name].fillna(0),
            linestyle="none",
            marker=MARKS[number % len(MARKS)],
            markersize=6.5 if emphasised else 5,
            color=style["color"],
            elinewidth=0.9,
            label=name,
            zorder=style["zorder"],
        )
    ax.set_title(group.title, fontsize=9.5, color=INK, loc="left")
    ax.set_xlabel("accuracy (%)" if settings.trained else group.unit, fontsize=9)
    if not settings.trained:
        ax.set_xlim(left=0)
    ax.tick_params(length=0, labelsize=8, labelcolor=INK)
    ax.grid(axis="x", color="#e1e4e8", linewidth=0.7)
    ax.set_axisbelow(True)
    for side in ax.spines.values():
        side.set_visible(False)
