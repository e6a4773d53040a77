"""A table of settings in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import pandas as pd

from edgefl.analysis.formatting import ENERGY_UNITS, TIME_UNITS, named_seeds, ranges, unit_for, with_spread
from edgefl.analysis.markup import bullets, latex_escape, latex_tabular, markdown_table, page, picture
from edgefl.analysis.report import Report, noted
from edgefl.analysis.results import SettingsTable

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


def setting_names(settings: SettingsTable) -> list[str]:
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


def explanations(settings: SettingsTable) -> list[str]:
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
    title, small_print, name = caption(settings), explanations(settings), settings.figure.stem
    said, notes = verdicts(settings), noted(settings.notes)
    axes = list(settings.axes)
    best = cells(settings, lambda text, best: f"**{text}**" if best else text).set_index(axes[0])
    table = markdown_table(best, axes[0])
    return Report(
        settings.figure.parent,
        score=settings.score,
        verdicts=said,
        caption=title,
        tables=[("", cells(settings).drop(columns=axes).set_axis(setting_names(settings)))],
        sentences=notes,
        small_print=small_print,
        look=[("Figure", settings.figure.name), ("More", f"{name}.md")],
        emphasised=settings.reference if len(settings.variants) > 1 else None,
        numbers={f"{name}.csv": settings.table},
        texts={
            f"{name}.md": page(title, bullets(said), table, bullets([*small_print, *notes]), picture(name)),
            f"{name}.tex": latex(settings),
        },
        pdf=False,
    )


def latex(settings: SettingsTable) -> str:
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
