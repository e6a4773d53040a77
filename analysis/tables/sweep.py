"""A sweep in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

import pandas as pd

from analysis.figures.sweep import UNITS, label_of, lower_bounds
from analysis.formatting import amount, named_seeds, unit_for, with_spread
from analysis.markup import bullets, latex_table, markdown_table, page, picture
from analysis.report import Report, noted
from analysis.results import Sweep
from analysis.units import axis_of


def headline(sweep: Sweep) -> pd.DataFrame:
    """Write a row per value, a column per series and cost; the values are the index."""
    texts: dict[str, list[str]] = {}
    places = sweep.table[list(sweep.keys)].drop_duplicates().sort_values(list(sweep.keys))
    labels = [axis_of(key, sweep.table[key]) for key in sweep.keys]
    for cost in sweep.costs:
        unit, size = unit_for(sweep.table[f"{cost}_mean"], UNITS[cost])
        for series, rows in sweep.table.groupby("series", sort=False):
            own = places.merge(rows, on=list(sweep.keys), how="left")
            lead = "" if series == "all" else f"{series}: "
            texts[lead + label_of(cost, sweep.target, unit)] = [
                f"> {amount(row[f'{cost}_mean'] / size)}"
                if lower
                else with_spread(row[f"{cost}_mean"] / size, row[f"{cost}_{sweep.layout.spread}"] / size)
                for lower, (_, row) in zip(lower_bounds(own, cost), own.iterrows(), strict=True)
            ]
    index = [
        ", ".join(f"{value / size:g}" for value, (_, size) in zip(row, labels, strict=True))
        for row in places.to_numpy()
    ]
    table = pd.DataFrame(texts, index=index)
    table.index.name = ", ".join(label for label, _ in labels)
    return table


def caption(sweep: Sweep) -> str:
    """Say in one line what the table shows."""
    return f"Costs against {' and '.join(sweep.keys)} ({named_seeds(sweep.seeds, sweep.layout.interval)})"


def explanations(sweep: Sweep) -> list[str]:
    """Say how numbers are defined, and repeat the notes."""
    lines = []
    if sweep.costs == ("accuracy_first",):
        lines.append(
            "Means over the first training rounds of each session, and over recurring sessions, if there are any."
        )
    elif sweep.target is None:
        lines.append(
            "Round latency: until the slowest device is done. Energy: of all devices. No probe rounds."
        )
    else:
        lines.append(
            f"To reach {sweep.target.named(sweep.reference)}, from the start of the session, probe rounds included;"
            " means over recurring sessions, if there are any. >: missed somewhere, whole sessions counted."
        )
    return lines + noted(sweep.notes)


def report(sweep: Sweep) -> Report:
    """Tell of a sweep: costs by value."""
    title, sentences, table = caption(sweep), explanations(sweep), headline(sweep)
    axis = str(table.index.name)
    # LaTeX names the axis also where it stands in the head
    turned, corner = (table.T, "") if sweep.layout.transposed else (table, axis)
    pictures = [picture(figure.stem) for figure in sweep.figures]
    return Report(
        sweep.out,
        caption=title,
        tables=[("", table)],
        sentences=sentences,
        look=[("Figure", figure.name, " and .pdf") for figure in sweep.figures],
        numbers={"sweep.csv": sweep.table},
        texts={
            "sweep.md": page(title, markdown_table(turned, corner), bullets(sentences), *pictures),
            "sweep.tex": latex_table(title, turned, axis),
        },
    )
