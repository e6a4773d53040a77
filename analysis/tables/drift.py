"""The table of concept drift in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

import math
from collections.abc import Callable

import pandas as pd

from edgefl.analysis.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    amount,
    named_seeds,
    unit_for,
    with_spread,
)
from edgefl.analysis.markup import bullets, latex_table, page, picture, section
from edgefl.analysis.report import Report, noted
from edgefl.analysis.results import DriftComparison

# heading -> column of shares
ACCURACIES = {
    "before (%)": "before",
    "dip (%)": "dip",
    "1 round (%)": "after_1",
    "10 rounds (%)": "after_10",
    "40 rounds (%)": "after_40",
    "80 rounds (%)": "after_80",
    "final (%)": "final",
    "spread over devices (%)": "deviation_final",
    "personal before (%)": "personal_before",
    "personal dip (%)": "personal_dip",
    "personal final (%)": "personal_final",
}


def change_names(comparison: DriftComparison) -> dict[int, str]:
    """Name each change of concept by the rounds in which it happens."""
    names = {}
    for change, rows in comparison.table.groupby("change"):
        first, last = rows["first_round_mean"].mean(), rows["last_round_mean"].mean()
        where = f"round {first:.0f}" if first == last else f"rounds {first:.0f} to {last:.0f}"
        names[int(str(change))] = f"change {change}, {where}"
    return names


def headline(comparison: DriftComparison, change: int) -> pd.DataFrame:
    """Write a row per variant about one change of concept; columns without any number are left out."""
    rows = comparison.table[comparison.table["change"] == change].set_index("variant")
    columns = {
        title: _cells(rows, name, lambda mean, std: with_spread(100 * mean, 100 * std, 2))
        for title, name in ACCURACIES.items()
    }
    time, seconds = unit_for(rows["recovery_s_mean"], TIME_UNITS)
    energy, joules = unit_for(rows["recovery_j_mean"], ENERGY_UNITS)
    columns["recovery (rounds)"] = _cells(
        rows, "recovery_rounds", lambda mean, std: with_spread(mean, std, 0)
    )
    columns[f"recovery ({time})"] = _cells(
        rows, "recovery_s", lambda mean, std: with_spread(mean / seconds, std / seconds)
    )
    columns[f"recovery ({energy})"] = _cells(
        rows, "recovery_j", lambda mean, std: with_spread(mean / joules, std / joules)
    )
    for title, name in {"epochs before": "epochs_before", "epochs after": "epochs_after"}.items():
        columns[title] = _cells(rows, name, lambda mean, std: amount(mean, 1))
    table = pd.DataFrame(columns, index=rows.index)
    return table.loc[:, (table != NOTHING).any()]


def _cells(rows: pd.DataFrame, name: str, text: Callable[[float, float], str]) -> list[str]:
    pairs = zip(rows[f"{name}_mean"], rows[f"{name}_std"], strict=True)
    return [NOTHING if math.isnan(mean) else text(mean, std) for mean, std in pairs]


def caption(comparison: DriftComparison) -> str:
    """Say in one line what the table shows."""
    return f"Concept drift ({named_seeds(comparison.seeds)})"


def explanations(comparison: DriftComparison) -> list[str]:
    """Say how the columns are defined, and repeat the notes."""
    return [
        *comparison.reading.words(),
        "epochs: of all participants together, per round, in 20 rounds before the drift and the 20 after its last"
        " step; personal: participants' own models after local training.",
        *noted(comparison.notes),
    ]


def report(comparison: DriftComparison) -> Report:
    """Tell of a comparison: a table for each change of concept."""
    title, sentences, name = caption(comparison), explanations(comparison), comparison.figure.stem
    changes = {words: headline(comparison, change) for change, words in change_names(comparison).items()}
    parts = [section(words, table, "variant") for words, table in changes.items()]
    return Report(
        comparison.figure.parent,
        score=comparison.score,
        caption=title,
        tables=[(words, table.T) for words, table in changes.items()],
        sentences=sentences,
        look=[("Figure", comparison.figure.name)],
        emphasised=comparison.reference,
        numbers={f"{name}.csv": comparison.table, f"{name}_runs.csv": comparison.detail},
        texts={
            f"{name}.md": page(title, *parts, bullets(sentences), picture(name)),
            f"{name}.tex": "\n".join(
                latex_table(f"{title}, {words}", table, "variant") for words, table in changes.items()
            ),
        },
        pdf=False,
    )
