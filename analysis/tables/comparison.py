"""A comparison in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

import math
from collections.abc import Iterable

import pandas as pd

from analysis.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    amount,
    compact_labels,
    named_seeds,
    percent_of,
    ranges,
    unit_for,
    with_spread,
)
from analysis.markup import latex_escape, latex_tabular, markdown_table
from analysis.results import Comparison


def headline(comparison: Comparison) -> pd.DataFrame:
    """Write the headline table, [variants x columns]. The reference has no speed-up and gain of its own."""
    table = comparison.table.set_index("variant")
    columns = _adaptation(comparison, table) if comparison.trained else _cost_per_round(table)
    columns |= _totals(table)
    return pd.DataFrame(columns, index=table.index)


def per_session(comparison: Comparison) -> pd.DataFrame:
    """Write each session's labels, kind and start accuracy of every variant in percent, [sessions x columns]."""
    table = comparison.per_session.set_index("session")
    columns: dict[str, Iterable[str]] = {
        "labels": [compact_labels(labels) for labels in table["labels"]],
        "kind": table["kind"],
    }
    for variant in comparison.table["variant"]:
        columns[variant] = _pair(table, f"{variant}_accuracy_start", 100, 2)
    return pd.DataFrame(columns, index=table.index)


def caption(comparison: Comparison) -> str:
    """Say in one line what the headline table shows."""
    seeds = named_seeds(comparison.seeds)
    if not comparison.trained:
        return f"Latency and energy ({seeds})"
    return f"Adaptation, {comparison.scope}: {ranges(comparison.sessions)} ({seeds})"


def explanations(comparison: Comparison) -> list[str]:
    """Explain how to read the headline table, one sentence each, and repeat the comparison's notes."""
    seeds = " and seeds" if len(comparison.seeds) > 1 else ""
    what = f"the sessions{seeds}" if comparison.trained else f"the rounds{seeds}; totals are of whole runs"
    lines = [f"Numbers not called median are means over {what}."]
    if comparison.trained:
        whose = "the best variant's" if comparison.reference is None else f"{comparison.reference}'s"
        if len(comparison.table) == 1:
            whose = "its own"
        share = percent_of(comparison.target)
        lines.append(
            f"{share} %: reached in the first training round with at least {share} % of {whose} best accuracy in the "
            "same session and seed. Time and energy count from the start of the session, probe rounds included."
        )
        if comparison.table["not_reached"].any():
            lines.append(
                "Where a session missed the target, > counts it with its whole length: a lower bound."
            )
        if comparison.reference is not None and len(comparison.table) > 1:
            lines.append(
                f"Speed-up: time to {share} % over that of {comparison.reference}; below 1 the variant is faster. "
                "Accumulated gain: its accuracy minus the variant's, summed over the rounds of a session."
            )
    return lines + [f"Note: {note}." for note in comparison.notes]


def markdown(comparison: Comparison) -> str:
    """Write the whole comparison as a Markdown page."""
    parts = [f"# {caption(comparison)}", markdown_table(headline(comparison), "variant")]
    parts.append("\n".join(f"- {line}" for line in explanations(comparison)))
    if comparison.trained:
        parts += ["## Accuracy (%) of the model that opens each session, before training"]
        parts += [markdown_table(per_session(comparison), "session")]
    parts.append(f"![comparison]({comparison.figure.name})")
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(comparison: Comparison) -> str:
    """Write the headline table as a LaTeX tabular, for the package booktabs."""
    table = headline(comparison).reset_index(names="Variant").map(latex_escape)
    head = [latex_escape(name) for name in table.columns]
    return latex_tabular(caption(comparison), "l" + "r" * (len(head) - 1), [head], table)


def _adaptation(comparison: Comparison, table: pd.DataFrame) -> dict[str, list[str]]:
    share = percent_of(comparison.target)
    energy, joules = unit_for(table["joules_to_target_at_least"], ENERGY_UNITS)
    time, seconds = unit_for(table["seconds_to_target_at_least"], TIME_UNITS)
    columns = {
        "Accuracy at start (%)": _pair(table, "accuracy_start", 100, 2),
        "First 10 rounds (%)": _pair(table, "accuracy_first", 100, 2),
        f"Rounds to {share} % (median)": [_rounds(row) for _, row in table.iterrows()],
        f"Time to {share} % (mean, {time})": [
            _to_target(row, "seconds", seconds) for _, row in table.iterrows()
        ],
        f"Energy to {share} % (mean, {energy})": [
            _to_target(row, "joules", joules) for _, row in table.iterrows()
        ],
        "Not reached": [f"{row.not_reached} of {row.targets}" for row in table.itertuples()],
    }
    if comparison.reference is None or len(table) == 1:
        return columns
    others = [name != comparison.reference for name in table.index]
    ratios = [
        NOTHING if math.isnan(ratio) else f"{amount(ratio)}×".replace("∞×", "∞")
        for ratio in table["speed_up_seconds_median"]
    ]
    gains = _pair(table, "gain", 100, 1)
    columns["Speed-up in time (median)"] = [
        cell if other else NOTHING for cell, other in zip(ratios, others, strict=True)
    ]
    columns["Accumulated gain (%)"] = [
        cell if other else NOTHING for cell, other in zip(gains, others, strict=True)
    ]
    return columns


def _cost_per_round(table: pd.DataFrame) -> dict[str, list[str]]:
    energy, joules = unit_for(table["round_energy_j_mean"], ENERGY_UNITS)
    time, seconds = unit_for(table["latency_s_mean"], TIME_UNITS)
    return {
        f"Round latency, slowest device ({time})": _pair(table, "latency_s", 1 / seconds),
        f"Round latency, mean device ({time})": _pair(table, "latency_mean_s", 1 / seconds),
        f"Round energy ({energy})": _pair(table, "round_energy_j", 1 / joules),
    }


def _totals(table: pd.DataFrame) -> dict[str, list[str]]:
    energy, joules = unit_for(table["energy_j_mean"], ENERGY_UNITS)
    time, seconds = unit_for(table["simulated_s_mean"], TIME_UNITS)
    return {
        f"Total energy ({energy})": _pair(table, "energy_j", 1 / joules),
        f"Total time ({time})": _pair(table, "simulated_s", 1 / seconds),
    }


def _rounds(row: pd.Series) -> str:
    median, probes = row["rounds_to_target_median"], row["probe_rounds_mean"]
    if math.isnan(median):
        return NOTHING
    text = "not reached" if math.isinf(median) else f"{median:g}"
    return f"{text} (+{probes:.2g} probe)" if probes > 0 else text


def _to_target(row: pd.Series, kind: str, unit: float) -> str:
    if row["not_reached"]:
        return f"> {amount(row[f'{kind}_to_target_at_least'] / unit)}"
    return with_spread(row[f"{kind}_to_target_mean"] / unit, row[f"{kind}_to_target_std"] / unit)


def _pair(table: pd.DataFrame, name: str, scale: float, decimals: int | None = None) -> list[str]:
    """Write cells from the columns name_mean and name_std."""
    return [
        with_spread(mean * scale, std * scale, decimals)
        for mean, std in zip(table[f"{name}_mean"], table[f"{name}_std"], strict=True)
    ]
