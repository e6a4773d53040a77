"""A sweep in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

import math

import pandas as pd

from edgefl.analysis.figures.sweep import UNITS, label_of, lower_bounds, words_of
from edgefl.analysis.measures.results import Sweep
from edgefl.analysis.measures.uncertainty import Ratio
from edgefl.analysis.measures.verdicts import Versus
from edgefl.analysis.page.formatting import NOTHING, amount, named_seeds, unit_for, with_interval, with_spread
from edgefl.analysis.page.markup import bullets, latex_table, markdown_table, page, picture
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.page.units import axis_of, bare, written
from edgefl.analysis.runs.choices import Layout

POSITIVE = frozenset(UNITS) - {"accuracy_first"}
RATIO = ("pairs", "ratio", "ratio_low", "ratio_high")


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
                f"> {amount(row[f'{cost}_mean'] / size)}" if lower else _mean(row, cost, size, sweep.layout)
                for lower, (_, row) in zip(lower_bounds(own, cost), own.iterrows(), strict=True)
            ]
            if f"{cost}_ratio" in own:
                kind = words_of(cost, sweep.target).partition(" to ")[0]
                first = written(sweep.keys[0], places[sweep.keys[0]].tolist())[0]
                texts[f"{lead}{kind} over that at {first}"] = [_ratio(row, cost) for _, row in own.iterrows()]
    index = [
        ", ".join(f"{value / size:g}" for value, (_, size) in zip(row, labels, strict=True))
        for row in places.to_numpy()
    ]
    table = pd.DataFrame(texts, index=index)
    table.index.name = ", ".join(label for label, _ in labels)
    return table


def _mean(row: pd.Series, cost: str, size: float, layout: Layout) -> str:
    """Write a mean; its interval on a logarithmic scale, as costs are above zero, an accuracy's as it is."""
    mean = row[f"{cost}_mean"] / size
    if layout.interval and cost in POSITIVE:
        return with_interval(mean, row[f"{cost}_low"] / size, row[f"{cost}_high"] / size)
    return with_spread(mean, row[f"{cost}_{layout.spread}"] / size)


def _ratio(row: pd.Series, cost: str) -> str:
    found = (row[f"{cost}_ratio"], row[f"{cost}_ratio_low"], row[f"{cost}_ratio_high"])
    return NOTHING if math.isnan(found[0]) else "1" if found == (1, 1, 1) else with_interval(*found)


def verdicts(sweep: Sweep) -> list[str]:
    """Say of each series how the last value compares with the first, paired by seed."""
    time, energy = (
        ("seconds_to_target", "joules_to_target") if sweep.target else ("latency_s", "round_energy_j")
    )
    if len(sweep.keys) > 1 or f"{time}_ratio" not in sweep.table:
        return []
    task = f"to {sweep.target.short}" if sweep.target else "for a round"
    key, sentences = sweep.keys[0], []
    for series, rows in sweep.table.groupby("series", sort=False):
        if len(rows) < 2:
            continue
        first, *_, last = written(key, rows[key].tolist())
        row = rows.iloc[-1]
        of_time, of_energy = (Ratio(*(row[f"{cost}_{name}"] for name in RATIO)) for cost in (time, energy))
        name = key.rpartition(".")[2] if first.replace(".", "").isdigit() else bare(key)
        words = name.replace("_", " ")
        lead = "" if series == "all" else f"{series}: "
        if not of_time.pairs:
            sentences.append(f"{lead}a target was missed at {words} {first} or {last}: no ratio to give.")
            continue
        sentences.append(lead + Versus(f"{words} {last}", first, of_time, of_energy, task).sentence())
    return sentences


def caption(sweep: Sweep) -> str:
    """Say in one line what the table shows."""
    seeds, several = named_seeds(sweep.seeds), len(sweep.seeds) > 1
    if sweep.layout.interval and several:
        seeds = f"{len(sweep.seeds)} seeds, mean and 95 % interval"
    return f"Costs against {' and '.join(sweep.keys)} ({seeds})"


def _explanations(sweep: Sweep) -> list[str]:
    """Say how numbers are defined."""
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
    if len(sweep.keys) == 1 and len(sweep.seeds) > 1:
        lines.append(
            "Intervals are Student's t on a logarithmic scale, ratios paired by seed: the same seed has the same"
            " devices, movement and channel at each value."
        )
    return lines


def report(sweep: Sweep) -> Report:
    """Tell of a sweep: costs by value."""
    title, small_print, table = caption(sweep), _explanations(sweep), headline(sweep)
    said, notes = verdicts(sweep), noted(sweep.notes)
    axis = str(table.index.name)
    # LaTeX names the axis also where it stands in the head
    turned, corner = (table.T, "") if sweep.layout.transposed else (table, axis)
    pictures = [picture(figure.stem) for figure in sweep.figures]
    return Report(
        sweep.out,
        score=sweep.score,
        verdicts=said,
        caption=title,
        tables=[("", table)],
        sentences=notes,
        small_print=small_print,
        look=[
            *(("Figure", figure.name, " and .pdf") for figure in sweep.figures),
            ("More", "sweep.md", "; --explain prints how to read this"),
        ],
        numbers={"sweep.csv": sweep.table},
        texts={
            "sweep.md": page(
                title,
                bullets(said),
                markdown_table(turned, corner),
                bullets([*small_print, *notes]),
                *pictures,
            ),
            "sweep.tex": latex_table(title, turned, axis),
        },
    )
