"""The reports in the terminal."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pandas as pd
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from analysis import tables
from analysis.costs_report import CostReport
from analysis.network_report import NetworkReport
from analysis.results import Comparison, DriftComparison, SettingsTable, Sweep
from analysis.theory_report import TheoryReport

GAP, EDGES = 3, 2  # blanks between the columns and around the table, as rich draws it


def print_comparison(comparison: Comparison, console: Console | None = None) -> None:
    """Print the headline table, the start accuracy of each session, the notes and where the figure is.

    Variants stand side by side; those that do not fit the console's width continue in a further table.
    """
    console = console or Console()
    console.print(Text(tables.comparison.caption(comparison), style="bold"))
    _print_table(console, tables.comparison.headline(comparison).T, comparison.reference)
    for title, further in tables.comparison.further_tables(comparison).items():
        console.print(Text(title, style="bold"))
        _print_table(console, further, comparison.reference)
    if comparison.trained:
        console.print(
            Text("Accuracy (%) of the model that opens each session, before training", style="bold")
        )
        sessions = tables.comparison.per_session(comparison)
        labels = ("labels " + sessions["labels"]).where(sessions["labels"] != "", "")
        columns = (sessions.index.astype(str), sessions["kind"], labels)
        padded = [[text.ljust(max(map(len, column))) for text in column] for column in columns]
        about = ["  ".join(words) for words in zip(*padded, strict=True)]
        _print_table(console, sessions.drop(columns=["kind", "labels"]).set_axis(about), comparison.reference)
    _print_end(console, tables.comparison.explanations(comparison), comparison.figure)


def print_settings(settings: SettingsTable, console: Console) -> None:
    """Print the lead of the reference per setting, the counts, and where the whole table is."""
    console.print(Text(tables.settings.caption(settings), style="bold"))
    texts = tables.settings.cells(settings)
    texts = texts.drop(columns=list(settings.axes)).set_axis(tables.settings.setting_names(settings))
    _print_table(console, texts, settings.reference)
    _print_end(console, tables.settings.explanations(settings), settings.figure)


def print_drift(comparison: DriftComparison, console: Console) -> None:
    """Print a table for each change of concept, how it is to be read, and where the figure is."""
    console.print(Text(tables.drift.caption(comparison), style="bold"))
    for change, name in tables.drift.change_names(comparison).items():
        console.print(Text(name, style="bold"))
        _print_table(console, tables.drift.headline(comparison, change).T, comparison.reference)
    _print_end(console, tables.drift.explanations(comparison), comparison.figure)


def print_sweep(sweep: Sweep, console: Console) -> None:
    """Print costs by value, how they are to be read, and where the figures are."""
    console.print(Text(tables.sweep.caption(sweep), style="bold"))
    table = tables.sweep.headline(sweep)
    console.print(Text(str(table.index.name), style="dim"))
    _print_table(console, table, None)
    for line in tables.sweep.explanations(sweep):
        console.print(Text(line, style="dim"))
    for figure in sweep.figures:
        _print_figure(console, figure)


def print_costs(costs: CostReport, console: Console) -> None:
    """Print every table of costs, how they are to be read, and where they are."""
    for title, table in costs.tables.items():
        console.print(Text(title, style="bold"))
        _print_table(console, table, None)
    for line in costs.explanations:
        console.print(Text(line, style="dim"))
    console.print(Text.assemble("Tables: ", (str(costs.out / "costs.md"), "bold")), soft_wrap=True)


def print_theory(theory: TheoryReport, console: Console) -> None:
    """Print constants, terms and limits, runs side by side, and where the rounds and the figure are."""
    _print_table(console, tables.theory.headline(theory.by_run), None)
    for line in (*tables.theory.EXPLANATIONS, *(f"Note: {note}." for note in theory.notes)):
        console.print(Text(line, style="dim"))
    path = theory.out / "theory_rounds.csv"
    console.print(Text.assemble("Round by round: ", (str(path), "bold")), soft_wrap=True)
    _print_figure(console, theory.figure)


def print_network(network: NetworkReport, console: Console) -> None:
    """Print the key figures of the network, runs side by side, what a reader has to know, and where the figure is."""
    _print_table(console, tables.network.headline(network.figures).T, None)
    for note in network.notes:
        console.print(Text(f"Note: {note}.", style="dim"))
    if network.figure is not None:
        _print_figure(console, network.figure)


def _print_figure(console: Console, figure: Path) -> None:
    console.print(Text.assemble("Figure: ", (str(figure), "bold"), " and .pdf"), soft_wrap=True)


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
    """Cut the frame into pieces whose columns fit side by side."""
    first = EDGES + max(map(len, frame.index))
    taken = first
    names: list[str] = []
    for name in frame.columns:
        width_of_column = GAP + max(len(name), *map(len, frame[name]))
        if names and taken + width_of_column > width:
            yield frame[names]
            taken, names = first, []
        taken, names = taken + width_of_column, [*names, name]
    yield frame[names]
