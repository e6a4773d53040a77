"""A table of settings in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

import textwrap
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from edgefl.analysis.figures.style import DPI, INK, variant_styles
from edgefl.analysis.measures.results import SettingsTable
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    TIME_UNITS,
    named_seeds,
    ranges,
    unit_for,
    with_spread,
)
from edgefl.analysis.page.markup import bullets, latex_escape, latex_tabular, markdown_table, page, picture
from edgefl.analysis.page.report import Report, noted

# What a table of runs without training shows: quantity of `SettingsTable.table` -> words, units
SHOWN_COSTS = {
    "latency_s": ("Latency", TIME_UNITS),
    "latency_mean_s": ("Mean latency", TIME_UNITS),
    "round_energy_j": ("Energy", ENERGY_UNITS),
}


class Group(NamedTuple):
    """Columns that belong together: the accuracy in one session, or one cost, of every variant.

    Attributes:
        short: what stands before a variant's name.
        title: in full.
        unit: of the numbers once multiplied by `scale`.
        means, stds: [settings x variants].
    """

    short: str
    title: str
    unit: str
    scale: float
    decimals: int | None
    means: pd.DataFrame
    stds: pd.DataFrame


def groups(settings: SettingsTable) -> list[Group]:
    """Cut the table into groups of columns, each with a column per variant."""
    cut = []
    if settings.trained:
        every = settings.table[list(settings.axes)].drop_duplicates()
        for session in settings.sessions:
            of_session = settings.table[settings.table["session"] == session]
            rows = every.merge(of_session, on=list(settings.axes), how="left")
            means, stds = (_columns(rows, settings.variants, kind) for kind in ("_mean", "_std"))
            cut.append(Group(str(session), f"Session {session}", "%", 100, 2, means, stds))
        return cut
    for quantity, (words, units) in SHOWN_COSTS.items():
        means, stds = (
            _columns(settings.table, settings.variants, f"_{quantity}{kind}") for kind in ("_mean", "_std")
        )
        unit, size = unit_for(means.to_numpy().ravel(), units)
        title = f"{words} ({unit})"
        cut.append(Group(title, title, unit, 1 / size, None, means, stds))
    return cut


def _columns(rows: pd.DataFrame, variants: Sequence[str], ending: str) -> pd.DataFrame:
    columns = rows[[f"{variant}{ending}" for variant in variants]]
    return columns.set_axis(list(variants), axis=1).reset_index(drop=True)


def cells(
    settings: SettingsTable, cell: Callable[[str, bool], str] = lambda text, best: text
) -> pd.DataFrame:
    """Write accuracies in percent, or costs in their units, [settings x (group, variant)].

    Args:
        cell: makes a cell of a text, told whether it is the best accuracy of several in its setting and session.
    """
    labels = settings.table[list(settings.axes)].drop_duplicates()
    columns = {axis: [cell(str(label), False) for label in labels[axis]] for axis in settings.axes}
    cut = groups(settings)
    several = {group.short: group.means.notna().sum(axis=1).max() > 1 for group in cut}
    for group in cut:
        best = group.means.max(axis=1)
        for variant in settings.variants:
            numbers = zip(group.means[variant], group.stds[variant], best, strict=True)
            columns[f"{group.short}: {variant}"] = [
                cell(
                    with_spread(group.scale * mean, group.scale * std, group.decimals),
                    settings.trained and several[group.short] and mean == highest,
                )
                for mean, std, highest in numbers
            ]
    return pd.DataFrame(columns)


def _setting_names(settings: SettingsTable) -> list[str]:
    """Name each setting by its labels in one line; numbers stand beside the name of their axis."""
    return [
        "  ".join(
            f"{axis} {label}" if _is_number(label) else str(label)
            for axis, label in zip(settings.axes, labels, strict=True)
        )
        for labels in settings.table[list(settings.axes)].drop_duplicates().to_numpy().tolist()
    ]


def caption(settings: SettingsTable) -> str:
    """Say in one line what the table of settings shows."""
    rounds, seeds = settings.first_rounds, named_seeds(settings.seeds)
    sessions = f"session{'s' * (len(settings.sessions) > 1)} {ranges(settings.sessions)}"
    if not settings.trained:
        return f"Latency and energy of a round, mean over the rounds of {sessions} ({seeds})"
    return f"Mean accuracy (%) over the first {rounds} rounds of {sessions} ({seeds})"


def _explanations(settings: SettingsTable) -> list[str]:
    """Say how costs are defined."""
    if settings.trained:
        return []
    return [
        "Latency: of the slowest device, which a synchronous round waits for. Mean latency: over the devices. "
        "Energy: of all devices. Probe rounds are left out."
    ]


def verdicts(settings: SettingsTable) -> list[str]:
    """Say in how many settings the reference leads, and where it does not."""
    lines: list[str] = []
    if settings.trained and len(leads := settings.table["lead"].dropna()):
        behind = settings.table[settings.table["lead"] <= 0]
        lines.append(
            f"{settings.reference} is ahead of all others in {int((leads > 0).sum())} of {len(leads)} pairs of "
            f"setting and session, by {100 * leads.median():.2f} points in the median."
        )
        for row in behind.to_dict("records"):
            where = ", ".join(f"{axis} {row[axis]}" for axis in settings.axes)
            lines.append(
                f"Behind: {where}, session {row['session']}: {row['best']} by {-100 * row['lead']:.2f}."
            )
    return lines


def report(settings: SettingsTable) -> Report:
    """Tell of a table of settings; in Markdown and LaTeX the best of each session is bold."""
    title, small_print, name = caption(settings), _explanations(settings), settings.figure.stem
    said, notes = verdicts(settings), noted(settings.notes)
    axes = list(settings.axes)
    best = cells(settings, lambda text, best: f"**{text}**" if best else text).set_index(axes[0])
    table = markdown_table(best, axes[0])
    return Report(
        settings.figure.parent,
        score=settings.score,
        verdicts=said,
        caption=title,
        tables=[("", cells(settings).drop(columns=axes).set_axis(_setting_names(settings)))],
        sentences=notes,
        small_print=small_print,
        look=[("Figure", settings.figure.name), ("More", f"{name}.md")],
        emphasised=settings.reference if len(settings.variants) > 1 else None,
        numbers={f"{name}.csv": settings.table},
        texts={
            f"{name}.md": page(title, bullets(said), table, bullets([*small_print, *notes]), picture(name)),
            f"{name}.tex": _latex(settings),
        },
        pdf=False,
    )


def _latex(settings: SettingsTable) -> str:
    """Write the table of settings as a LaTeX tabular, for the package booktabs."""
    table = cells(
        settings, lambda text, best: rf"\textbf{{{latex_escape(text)}}}" if best else latex_escape(text)
    )
    count, width = len(settings.axes), len(settings.variants)
    titles = [group.title for group in groups(settings)]
    above = [rf"\multicolumn{{{width}}}{{c}}{{{latex_escape(title)}}}" for title in titles]
    names = [latex_escape(name) for name in (*settings.axes, *settings.variants * len(titles))]
    layout = "l" * count + "r" * (table.shape[1] - count)
    return latex_tabular(caption(settings), layout, [[""] * count + above, names], table)


def _is_number(label: object) -> bool:
    try:
        float(str(label))
    except ValueError:
        return False
    return True


ROW_INCH, PANEL_INCH, MARGIN_INCH = 0.26, 3.1, 1.0
LABEL_INCH, CHARACTERS_AN_INCH = 0.075, 9.5  # of a letter beside the panels; of the title
MARKS = "oDsv^P"
DODGE = 0.16  # of a row, between marks of costs: they are often the same, and one would hide the other
WIDEST = 6  # panels side by side; a page does not hold more


def settings_figure(settings: SettingsTable) -> Figure:
    """Draw accuracy, or costs, of each variant in each setting; whiskers are one standard deviation over seeds."""
    shown = groups(settings)[:WIDEST]
    names = _setting_names(settings)
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
