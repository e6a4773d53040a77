"""A table of settings in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

from collections.abc import Callable

import pandas as pd

from analysis.formatting import named_seeds, ranges, with_spread
from analysis.markup import latex_escape, latex_tabular, markdown_table
from analysis.results import SettingsTable


def cells(
    settings: SettingsTable, cell: Callable[[str, bool], str] = lambda text, best: text
) -> pd.DataFrame:
    """Write accuracies in percent, [settings x (session, variant)].

    Args:
        cell: makes a cell of a text, told whether it is the best of its setting and session.
    """
    columns: dict[str, list[str]] = {axis: [] for axis in settings.axes}
    for labels, rows in settings.table.groupby(list(settings.axes), sort=False):
        for axis, label in zip(settings.axes, labels, strict=True):
            columns[axis].append(cell(str(label), False))
        for row in rows.to_dict("records"):
            for variant in settings.variants:
                text = with_spread(100 * row[f"{variant}_mean"], 100 * row[f"{variant}_std"], 2)
                shown = cell(text, variant == row["best"])
                columns.setdefault(f"{row['session']}: {variant}", []).append(shown)
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
    rounds, sessions = settings.first_rounds, ranges(settings.sessions)
    return f"Mean accuracy (%) over the first {rounds} rounds of sessions {sessions} ({named_seeds(settings.seeds)})"


def explanations(settings: SettingsTable) -> list[str]:
    """Say in how many settings the reference leads and where it does not, and repeat the notes."""
    lines = []
    leads = settings.table["lead"].dropna()
    if len(leads):
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
    return lines + [f"Note: {note}." for note in settings.notes]


def markdown(settings: SettingsTable) -> str:
    """Write the table of settings as a Markdown page; the best of each session is bold."""
    table = cells(settings, lambda text, best: f"**{text}**" if best else text).set_index(settings.axes[0])
    parts = [f"# {caption(settings)}", markdown_table(table, settings.axes[0])]
    parts.append("\n".join(f"- {line}" for line in explanations(settings)))
    parts.append(f"![settings]({settings.figure.name})")
    return "\n\n".join(parts) + "\n"


def latex(settings: SettingsTable) -> str:
    """Write the table of settings as a LaTeX tabular, for the package booktabs."""
    table = cells(
        settings, lambda text, best: rf"\textbf{{{latex_escape(text)}}}" if best else latex_escape(text)
    )
    count, width = len(settings.axes), len(settings.variants)
    sessions = [rf"\multicolumn{{{width}}}{{c}}{{Session {session}}}" for session in settings.sessions]
    names = [latex_escape(name) for name in (*settings.axes, *settings.variants * len(settings.sessions))]
    layout = "l" * count + "r" * (table.shape[1] - count)
    return latex_tabular(caption(settings), layout, [[""] * count + sessions, names], table)


def _is_number(label: object) -> bool:
    try:
        float(str(label))
    except ValueError:
        return False
    return True
