"""The comparison in the terminal."""

import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis import tables
from analysis.comparison import Comparison
from analysis.settings import SettingsTable

GAP, EDGES = 3, 2  # blanks between the columns and around the table, as rich draws it


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print the headline table, the start accuracy of each session, the notes and where the figure is.

    Variants stand side by side; those that do not fit the console's width continue in a further table.
    """
    console = console or Console()
    console.print(Text(tables.caption(comparison), style="bold"))
    _print_table(console, tables.headline(comparison).T, comparison.reference)
    if comparison.trained:
        console.print(
            Text("Accuracy (%) of the model that opens each session, before training", style="bold")
        )
        sessions = tables.per_session(comparison)
        labels = ("labels " + sessions["labels"]).where(sessions["labels"] != "", "")
        columns = (sessions.index.astype(str), sessions["kind"], labels)
        padded = [[text.ljust(max(map(len, column))) for text in column] for column in columns]
        about = ["  ".join(words) for words in zip(*padded, strict=True)]
        _print_table(console, sessions.drop(columns=["kind", "labels"]).set_axis(about), comparison.reference)
    _print_end(console, tables.explanations(comparison), comparison.figure)


def print_settings(found: SettingsTable, console: Console) -> None:
    """Print the lead of the reference per setting, the counts, and where the whole table is."""
    console.print(Text(tables.settings_caption(found), style="bold"))
    texts = tables.settings(found)
    texts = texts.drop(columns=list(found.axes)).set_axis(tables.setting_names(found))
    _print_table(console, texts, found.reference)
    _print_end(console, tables.settings_explanations(found), found.figure)


def print_network(figures: pd.DataFrame, console: Console) -> None:
    """Print the key figures of the network, runs side by side."""
    named = figures.set_index(figures["variant"] + " seed " + figures["seed"].astype(str))
    texts = pd.DataFrame(
        {
            "Handovers": named["handovers"].map("{:,}".format),
            "per device and hour": named["handovers_per_device_hour"].map("{:.1f}".format),
            "Ping-pong (%)": (100 * named["ping_pong_share"]).map(_or_nothing("{:.1f}")),
            "Time of stay (s)": named["time_of_stay_s"].map(_or_nothing("{:.2f}")),
            "Interrupted (s)": named["interruption_s"].map("{:,.2f}".format),
            "Interrupted, of all time (%)": (100 * named["interruption_share"]).map("{:.3f}".format),
            "Participations broken": named["broken"].map("{:,}".format),
            "Wasted (Mbit)": (named["wasted_bits"] / 1e6).map("{:.2f}".format),
            "Wasted (J)": named["wasted_j"].map("{:.4g}".format),
            "Wasted, of all joules (%)": (100 * named["wasted_share"]).map("{:.1f}".format),
        }
    )
    _print_table(console, texts.T, None)


def _or_nothing(form: str) -> Callable[[float], str]:
    """Formats a number; a run without handovers has none."""
    return lambda value: tables.NOTHING if math.isnan(value) else form.format(value)


def _print_table(console: Console, frame: pd.DataFrame, reference: str | None) -> None:
    for block in _blocks(frame, console.width):
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column("")
        for name in block.columns:
            style = "bold" if name == reference else ""
            table.add_column(Text(name), justify="right", style=style, header_style="bold")
        for index, row in zip(block.index, block.to_numpy().tolist(), strict=True):
            table.add_row(Text(index), *map(Text, row))
        console.print(table)


def _print_end(console: Console, explanations: Iterable[str], figure: Path) -> None:
    for line in explanations:
        console.print(Text(line, style="dim"))
    console.print(Text.assemble("Figure: ", (str(figure), "bold")), soft_wrap=True)


def _blocks(frame: pd.DataFrame, width: int) -> Iterator[pd.DataFrame]:
    """The frame in pieces whose columns fit side by side."""
    first = EDGES + max(map(len, frame.index))
    taken = first
    names: list[str] = []
    for name in frame.columns:
        own = GAP + max(len(name), *map(len, frame[name]))
        if names and taken + own > width:
            yield frame[names]
            taken, names = first, []
        taken, names = taken + own, [*names, name]
    yield frame[names]
