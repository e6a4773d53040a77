"""Write a comparison's tables with headings and rounded numbers."""

import math
from collections.abc import Iterable

import pandas as pd

from edgefl.analysis.measures.results import Comparison
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    amount,
    compact_labels,
    spreads,
    unit_for,
    with_spread,
)
from edgefl.analysis.runs.choices import COLUMNS
from edgefl.analysis.runs.servers import BY_ROUNDS, METRICS

POINTS = (("points", 0.01),)
# tested quantity -> heading, units
QUANTITIES: dict[str, tuple[str, tuple[tuple[str, float], ...]]] = {
    "accuracy_start": ("Accuracy at start ({unit})", POINTS),
    "accuracy_first": ("First 10 rounds ({unit})", POINTS),
    "seconds_to_target": ("Time to the target ({unit})", TIME_UNITS),
    "joules_to_target": ("Energy to the target ({unit})", ENERGY_UNITS),
    "energy_j": ("Energy of a run ({unit})", ENERGY_UNITS),
    "simulated_s": ("Total time ({unit})", TIME_UNITS),
    "latency_s": ("Round latency ({unit})", TIME_UNITS),
    "round_energy_j": ("Round energy ({unit})", ENERGY_UNITS),
}
# cost of a round or run -> column's name, heading, units
COSTS = {
    "latency_s": ("latency", "Round latency, slowest device", TIME_UNITS),
    "latency_mean_s": ("latency_mean", "Round latency, mean device", TIME_UNITS),
    "round_energy_j": ("round_energy", "Round energy", ENERGY_UNITS),
    "energy_j": ("total_energy", "Energy of a run", ENERGY_UNITS),
    "simulated_s": ("total_time", "Total time", TIME_UNITS),
}


def headline(comparison: Comparison) -> pd.DataFrame:
    """Write the headline table, [variants x columns]. The reference has no speed-up or gain."""
    table = comparison.table.set_index("variant")
    columns = _adaptation(comparison, table) if comparison.trained else {}
    columns |= _costs(table, comparison.layout.spread)
    kinds = ("both", "trained" if comparison.trained else "untrained")
    wanted = comparison.layout.columns or [
        name
        for name, kind in COLUMNS.items()
        if kind in kinds and (comparison.by_rounds or name not in BY_ROUNDS)
    ]
    chosen = [columns[name] for name in wanted if name in columns]
    return pd.DataFrame(dict(chosen), index=table.index)


def targets(comparison: Comparison) -> pd.DataFrame:
    """Write the cost of each target, [targets x (variant, unit)]; empty with a single target."""
    if len(comparison.targets) < 2:
        return pd.DataFrame()
    columns, table = {}, comparison.to_targets
    units, ending = _units(table), comparison.layout.spread
    for variant, rows in table.groupby("variant", sort=False):
        medians = rows["rounds_to_target_median"]
        if comparison.by_rounds:
            columns[f"{variant}, rounds"] = [f"{m:g}" if math.isfinite(m) else amount(m) for m in medians]
        for kind, (unit, size) in units.items():
            cells = [_to_target(row, kind, size, ending) for _, row in rows.iterrows()]
            columns[f"{variant}, {unit}"] = cells
    return pd.DataFrame(columns, index=[target.short for target in comparison.targets])


def tests(comparison: Comparison) -> pd.DataFrame:
    """Write the differences to the reference, [quantity and variant x columns]; empty without two seeds."""
    table = comparison.tests[comparison.tests["pairs"] > 1]
    if not comparison.by_rounds:
        table = table[~table["quantity"].isin(METRICS)]
    if table.empty:
        return pd.DataFrame()
    rows, names = [], []
    for row in table.itertuples():
        words, units = QUANTITIES[str(row.quantity)]
        unit, size = units[0] if len(units) == 1 else unit_for([abs(row.mean)], units)
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
    columns |= {
        "labels": [compact_labels(labels) for labels in table["labels"]],
        "kind": table["kind"],
    }
    for variant in comparison.table["variant"]:
        columns[variant] = spreads(table, f"{variant}_accuracy_start", ending, decimals=2, scale=100)
    return pd.DataFrame(columns, index=table.index)


def in_lines(comparison: Comparison, sessions: pd.DataFrame) -> pd.DataFrame:
    """Describe each session in the index of the terminal's table."""
    labels = ("labels " + sessions["labels"]).where(sessions["labels"] != "", "")
    columns = [sessions.index.astype(str), sessions["kind"], labels]
    if comparison.clock is not None:
        many = sessions["devices"] + sessions["devices"].map(lambda n: " device" if n == "1" else " devices")
        columns = [sessions["begins"], "cell " + sessions["cell"], many, *columns[1:]]
    padded = [[text.ljust(max(map(len, column))) for text in column] for column in columns]
    about = ["  ".join(words) for words in zip(*padded, strict=True)]
    return sessions[list(comparison.table["variant"])].set_axis(about)


Columns = dict[str, tuple[str, list[str]]]  # name -> heading, cells


def _adaptation(comparison: Comparison, table: pd.DataFrame) -> Columns:
    ending = comparison.layout.spread
    columns: Columns = {
        "start": ("Accuracy at start (%)", spreads(table, "accuracy_start", ending, decimals=2, scale=100)),
        "first": ("First 10 rounds (%)", spreads(table, "accuracy_first", ending, decimals=2, scale=100)),
        "dip": ("Dip (points)", spreads(table, "dip", ending, decimals=2, scale=100)),
        "recovery": ("Recovery (mean, rounds)", spreads(table, "recovery_rounds", ending, decimals=1)),
    }
    if not comparison.targets:
        return columns
    goal = comparison.targets[0].short
    rows = [row for _, row in table.iterrows()]
    for (kind, (unit, size)), word in zip(_units(table).items(), ("Time", "Energy"), strict=True):
        cells = [_to_target(row, kind, size, ending) for row in rows]
        columns[kind] = (f"{word} to {goal} (mean, {unit})", cells)
    columns |= {
        "rounds": (f"Rounds to {goal} (median)", [_rounds(row) for row in rows]),
        "missed": ("Not reached", [f"{row['not_reached']:.0f} of {row['targets']:.0f}" for row in rows]),
    }
    if comparison.reference is None or len(table) == 1:
        return columns
    others = [name != comparison.reference for name in table.index]
    ratios = [
        NOTHING if math.isnan(ratio) else f"{amount(ratio)}×".replace("∞×", "∞")
        for ratio in table["speed_up_seconds_median"]
    ]
    gains = spreads(table, "gain", ending, decimals=1, scale=100)
    for name, heading, cells in (
        ("speed_up", f"Time over {comparison.reference}'s (median)", ratios),
        ("gain", "Accumulated gain (%)", gains),
    ):
        shown = [cell if other else NOTHING for cell, other in zip(cells, others, strict=True)]
        columns[name] = (heading, shown)
    return columns


def _costs(table: pd.DataFrame, ending: str) -> Columns:
    """Write the costs of a round and of the whole run."""
    units = {name: unit_for(table[f"{name}_mean"], units) for name, (_, _, units) in COSTS.items()}
    units["latency_mean_s"] = units["latency_s"]
    return {
        name: (f"{words} ({units[column][0]})", spreads(table, column, ending, scale=1 / units[column][1]))
        for column, (name, words, _) in COSTS.items()
    }


def _rounds(row: pd.Series) -> str:
    median, probes = row["rounds_to_target_median"], row["probe_rounds_mean"]
    if math.isnan(median):
        return NOTHING
    text = "not reached" if math.isinf(median) else f"{median:g}"
    return f"{text} (+{probes:.2g} probe)" if probes > 0 else text


def _units(table: pd.DataFrame) -> dict[str, tuple[str, float]]:
    """Choose the units of time and energy to a target."""
    kinds = {"seconds": TIME_UNITS, "joules": ENERGY_UNITS}
    return {kind: unit_for(table[f"{kind}_to_target_at_least"], units) for kind, units in kinds.items()}


def _to_target(row: pd.Series, kind: str, unit: float, ending: str) -> str:
    if row["not_reached"]:
        return f"> {amount(row[f'{kind}_to_target_at_least'] / unit)}"
    return with_spread(row[f"{kind}_to_target_mean"] / unit, row[f"{kind}_to_target_{ending}"] / unit)
