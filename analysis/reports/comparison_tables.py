"""Write a comparison's tables with headings and rounded numbers."""

import math
from collections.abc import Iterable, Sequence
from functools import partial
from typing import NamedTuple

import pandas as pd

from edgefl.analysis.measures.results import Comparison
from edgefl.analysis.measures.verdicts import first_of, ratio_of, with_ends
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    amount,
    compact_labels,
    lower_bound,
    spreads,
    unit_for,
    with_spread,
)
from edgefl.analysis.runs.choices import COLUMNS
from edgefl.analysis.runs.scenario_keys import BY_ROUNDS, METRICS

POINTS = (("points", 0.01),)
# tested quantity -> heading, units
QUANTITIES: dict[str, tuple[str, tuple[tuple[str, float], ...]]] = {
    "accuracy_start": ("Accuracy at start ({unit})", POINTS),
    "accuracy_first": ("First rounds ({unit})", POINTS),
    "seconds_to_target": ("Time from session start to the target ({unit})", TIME_UNITS),
    "joules_to_target": ("Energy from session start to the target ({unit})", ENERGY_UNITS),
    "energy_j": ("Energy of a run ({unit})", ENERGY_UNITS),
    "simulated_s": ("End of the last round ({unit})", TIME_UNITS),
    "latency_s": ("Round latency ({unit})", TIME_UNITS),
    "round_energy_j": ("Round energy ({unit})", ENERGY_UNITS),
}
# cost of a round or run -> column's name, heading, units
COSTS = {
    "latency_s": ("latency", "Round latency, slowest device", TIME_UNITS),
    "latency_mean_s": ("latency_mean", "Round latency, mean device", TIME_UNITS),
    "round_energy_j": ("round_energy", "Round energy", ENERGY_UNITS),
    "energy_j": ("total_energy", "Energy of a run", ENERGY_UNITS),
    "simulated_s": ("total_time", "End of the last round", TIME_UNITS),
}


def headline(comparison: Comparison) -> pd.DataFrame:
    """Write the headline table, [variants x columns], without speed-up and gain for the reference."""
    kinds = ("both", "trained" if comparison.trained else "untrained")
    chosen = _chosen(comparison, [name for name, kind in COLUMNS.items() if kind in kinds])
    index = comparison.table["variant"]
    return pd.DataFrame({column.heading: column.cells for column in chosen}, index=pd.Index(index))


def brief(comparison: Comparison) -> pd.DataFrame:
    """Write the headline table's columns that answer the study's question, with short headings, [variants x columns].

    The columns are costs with their ratios, accuracy, and the number of missed targets, if any was missed.
    """
    if comparison.layout.columns:
        return headline(comparison)
    totals = ["total_time", "total_energy"]
    wanted = (
        ["latency", "latency_ratio", "round_energy", "round_energy_ratio"] if comparison.by_rounds else totals
    )
    if comparison.trained:
        of_target = ["seconds", "time_ratio", "joules", "energy_ratio"]
        of_target = of_target if len(comparison.table) > 1 else of_target[::2]  # a ratio to itself is 1
        wanted = [*(of_target if comparison.target else [*totals, "start"]), "first"]
        wanted += ["missed"] * bool(comparison.table["not_reached"].any())
    chosen = _chosen(comparison, wanted)
    return pd.DataFrame(
        {column.short: column.cells for column in chosen}, index=list(comparison.table["variant"])
    )


def _chosen(comparison: Comparison, usual: Sequence[str]) -> list["Column"]:
    """Return the requested columns; by default, the usual columns that mean the same in all variants."""
    table = comparison.table.set_index("variant")
    columns = (_adaptation(comparison, table) if comparison.trained else {}) | _costs(comparison, table)
    usual = [name for name in usual if comparison.by_rounds or name not in BY_ROUNDS]
    return [columns[name] for name in comparison.layout.columns or usual if name in columns]


def targets(comparison: Comparison) -> pd.DataFrame:
    """Write the cost of each target, [targets and variants x columns]; empty with a single target."""
    if len(comparison.targets) < 2:
        return pd.DataFrame()
    table = comparison.to_targets
    shorts = {target.key: target.short for target in comparison.targets}
    columns = {}
    if comparison.by_rounds:
        medians = table["rounds_to_target_median"]
        columns["rounds"] = [f"{m:g}" if math.isfinite(m) else amount(m) for m in medians]
    for (kind, (unit, size)), word in zip(_units(table).items(), ("time", "energy"), strict=True):
        cells = [_to_target(row, kind, size, comparison.layout.spread) for _, row in table.iterrows()]
        columns[f"{word} ({unit})"] = cells
    names = [f"{shorts[key]}: {name}" for key, name in zip(table["target"], table["variant"], strict=True)]
    return pd.DataFrame(columns, index=names)


def tests(comparison: Comparison) -> pd.DataFrame:
    """Write the differences to the reference, [quantity and variant x columns]; empty for fewer than two seeds."""
    table = comparison.tests[comparison.tests["pairs"] > 1]
    if not comparison.by_rounds:
        table = table[~table["quantity"].isin(METRICS)]
    if table.empty:
        return pd.DataFrame()
    rows, names = [], []
    for row in table.itertuples():
        words, units = QUANTITIES[str(row.quantity)]
        unit, size = units[0] if len(units) == 1 else unit_for([abs(row.mean), row.half_width], units)
        names.append(f"{words.format(unit=unit)}, {row.variant}")
        rows.append(
            {
                "difference ± 95 % interval": with_spread(row.mean / size, row.half_width / size),
                "pairs": str(row.pairs),
                "p (paired t)": _probability(row.p_t),
                "p (Wilcoxon)": _probability(row.p_wilcoxon),
            }
        )
    return pd.DataFrame(rows, index=names)


def _probability(p: float) -> str:
    """Write a p-value with two digits, and a tiny one as a bound."""
    return NOTHING if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.2g}"


def per_session(comparison: Comparison) -> pd.DataFrame:
    """Write each session's labels, kind and start accuracy of every variant in percent, [sessions x columns]."""
    table, ending = comparison.per_session.set_index("session"), comparison.layout.spread
    columns: dict[str, Iterable[str]] = {}
    if comparison.clock is not None:
        columns = {name: table[name].astype(str) for name in ("begins", "cell", "devices")}
    columns |= {"labels": [compact_labels(labels) for labels in table["labels"]], "kind": table["kind"]}
    for variant in comparison.table["variant"]:
        columns[variant] = spreads(table, f"{variant}_accuracy_start", ending, decimals=1, scale=100)
    return pd.DataFrame(columns, index=table.index)


def in_lines(comparison: Comparison, sessions: pd.DataFrame) -> pd.DataFrame:
    """Return the table of sessions for the terminal, with a description of each session as the row's name."""
    labels = ("labels " + sessions["labels"]).where(sessions["labels"] != "", "")
    columns = [sessions.index.astype(str), sessions["kind"], labels]
    if comparison.clock is not None:
        many = sessions["devices"] + sessions["devices"].map(lambda n: " device" if n == "1" else " devices")
        columns = [sessions["begins"], "cell " + sessions["cell"], many, *columns[1:]]
    padded = [[text.ljust(max(map(len, column))) for text in column] for column in columns]
    about = ["  ".join(words) for words in zip(*padded, strict=True)]
    return sessions[list(comparison.table["variant"])].set_axis(about)


class Column(NamedTuple):
    """A column of the headline table, with its heading in full and in the terminal."""

    heading: str
    short: str
    cells: list[str]


Columns = dict[str, Column]  # columns by name


def _adaptation(comparison: Comparison, table: pd.DataFrame) -> Columns:
    shares = partial(spreads, table, ending=comparison.layout.spread, decimals=1, scale=100)
    first = f"{first_of(comparison.rounds, comparison.detail)} (%)"
    columns = {
        "start": Column("Accuracy at start (%)", "at start (%)", shares("accuracy_start")),
        "first": Column(first.capitalize(), f"accuracy, {first}", shares("accuracy_first")),
        "dip": Column("Dip (points)", "dip (points)", shares("dip")),
        "recovery": Column(
            "Recovery (mean, rounds)",
            "recovery (rounds)",
            spreads(table, "recovery_rounds", comparison.layout.spread, decimals=1),
        ),
    }
    if not comparison.targets:
        return columns
    goal = comparison.targets[0].short
    rows = [row for _, row in table.iterrows()]
    for (kind, (unit, size)), word in zip(_units(table).items(), ("Time", "Energy"), strict=True):
        cells = [_to_target(row, kind, size, comparison.layout.spread) for row in rows]
        heading = f"{word} from session start to {goal} (mean, {unit})"
        columns[kind] = Column(heading, f"{word.lower()} to target ({unit})", cells)
        columns[f"{word.lower()}_ratio"] = _ratios(comparison, word, f"{kind}_to_target")
    missed = [f"{row['not_reached']:.0f} of {row['targets']:.0f}" for row in rows]
    columns["rounds"] = Column(f"Rounds to {goal} (median)", "rounds", [_rounds(row) for row in rows])
    columns["missed"] = Column("Not reached", "missed", missed)
    if comparison.reference is None or len(table) == 1:
        return columns
    others = [name != comparison.reference for name in table.index]
    medians = table["speed_up_seconds_median"]
    for name, heading, cells in (
        ("speed_up", f"Speed-up of {comparison.reference} (median)", [amount(median) for median in medians]),
        ("gain", f"Accumulated gain of {comparison.reference} (%)", shares("gain")),
    ):
        shown = [cell if other else NOTHING for cell, other in zip(cells, others, strict=True)]
        columns[name] = Column(heading, heading, shown)
    return columns


def _ratios(comparison: Comparison, word: str, cost: str) -> Column:
    """Write the ratio of each variant's cost to the base's cost; the base itself gets 1, but a bound gets none."""
    cells = [
        NOTHING
        if math.isnan(row[f"{cost}_ratio"])
        else "1"
        if row["variant"] == comparison.base
        else with_ends(ratio_of(row, cost))[0]
        for _, row in comparison.table.iterrows()
    ]
    return Column(f"{word} relative to {comparison.base}", f"{word.lower()} ratio", cells)


def _costs(comparison: Comparison, table: pd.DataFrame) -> Columns:
    """Write the costs of a round and of the whole run."""
    units = {name: unit_for(table[f"{name}_mean"], units) for name, (_, _, units) in COSTS.items()}
    units["latency_mean_s"] = units["latency_s"]
    columns = {}
    for column, (name, words, _) in COSTS.items():
        unit, size = units[column]
        cells = spreads(table, column, comparison.layout.spread, scale=1 / size)
        columns[name] = Column(f"{words} ({unit})", f"{words.partition(',')[0].lower()} ({unit})", cells)
        if f"{column}_ratio" in table:
            columns[f"{name}_ratio"] = _ratios(comparison, words.partition(",")[0], column)
    return columns


def _rounds(row: pd.Series) -> str:
    median, probes = row["rounds_to_target_median"], row["probe_rounds_mean"]
    if math.isnan(median):
        return NOTHING
    text = "not reached" if math.isinf(median) else f"{median:g}"
    return f"{text} (+{probes:.2g} probe)" if probes > 0 else text


def _units(table: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """Choose units for the time and energy that reaching a target takes."""
    kinds = {"seconds": TIME_UNITS, "joules": ENERGY_UNITS}
    return {kind: unit_for(table[f"{kind}_to_target_at_least"], units) for kind, units in kinds.items()}


def _to_target(row: pd.Series, kind: str, unit: float, ending: str) -> str:
    if row["not_reached"]:
        return f"> {lower_bound(row[f'{kind}_to_target_at_least'] / unit)}"
    return with_spread(row[f"{kind}_to_target_mean"] / unit, row[f"{kind}_to_target_{ending}"] / unit)
