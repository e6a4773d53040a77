"""A comparison in words and rounded numbers: the text behind the terminal, Markdown and LaTeX."""

import math
from collections.abc import Iterable, Sequence

import pandas as pd

from edgefl.analysis.measures.results import Comparison
from edgefl.analysis.page.formatting import (
    ENERGY_UNITS,
    NOTHING,
    TIME_UNITS,
    amount,
    compact_labels,
    did_you_mean,
    named_seeds,
    ranges,
    unit_for,
    with_spread,
)
from edgefl.analysis.page.markup import bullets, latex_table, markdown_table, page, picture, section
from edgefl.analysis.page.report import Report, noted
from edgefl.analysis.runs.choices import COLUMNS, Layout
from edgefl.analysis.runs.servers import BY_ROUNDS, METRICS

POINTS = (("points", 0.01),)
TARGETS = "Cost of each target (median rounds, mean time and energy)"
# what is tested -> words, units
QUANTITIES: dict[str, tuple[str, tuple[tuple[str, float], ...]]] = {
    "accuracy_start": ("Accuracy at start ({unit})", POINTS),
    "accuracy_first": ("First 10 rounds ({unit})", POINTS),
    "seconds_to_target": ("Time to the target ({unit})", TIME_UNITS),
    "joules_to_target": ("Energy to the target ({unit})", ENERGY_UNITS),
    "energy_j": ("Total energy ({unit})", ENERGY_UNITS),
    "simulated_s": ("Total time ({unit})", TIME_UNITS),
    "latency_s": ("Round latency ({unit})", TIME_UNITS),
    "round_energy_j": ("Round energy ({unit})", ENERGY_UNITS),
}


def check_columns(layout: Layout) -> None:
    """Refuse the name of a column that there is not.

    Raises:
        ValueError: names it and those that there are.
    """
    for name in layout.columns:
        if name not in COLUMNS:
            raise ValueError(f"no column '{name}'{did_you_mean(name, COLUMNS)}")


def headline(comparison: Comparison) -> pd.DataFrame:
    """Write the headline table, [variants x columns]. The reference has no speed-up and gain of its own."""
    table = comparison.table.set_index("variant")
    columns = _adaptation(comparison, table) if comparison.trained else {}
    columns |= _cost_per_round(table, comparison.layout) | _totals(table, comparison.layout)
    kinds = ("both", "trained" if comparison.trained else "untrained")
    wanted = comparison.layout.columns or [
        name
        for name, kind in COLUMNS.items()
        if kind in kinds and (comparison.by_rounds or name not in BY_ROUNDS)
    ]
    chosen = [columns[name] for name in wanted if name in columns]
    return pd.DataFrame(dict(chosen), index=table.index)


def targets(comparison: Comparison) -> pd.DataFrame:
    """Write what each target costs, [targets x (variant, unit)]; empty where there is only one target."""
    if len(comparison.targets) < 2:
        return pd.DataFrame()
    columns, table = {}, comparison.to_targets
    energy, joules = unit_for(table["joules_to_target_at_least"], ENERGY_UNITS)
    time, seconds = unit_for(table["seconds_to_target_at_least"], TIME_UNITS)
    ending = comparison.layout.spread
    for variant, rows in table.groupby("variant", sort=False):
        medians = rows["rounds_to_target_median"]
        if comparison.by_rounds:
            columns[f"{variant}, rounds"] = [f"{m:g}" if math.isfinite(m) else amount(m) for m in medians]
        for unit, kind, size in ((time, "seconds", seconds), (energy, "joules", joules)):
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
                "p (paired t)": probability(row.p_t),
                "p (Wilcoxon)": probability(row.p_wilcoxon),
            }
        )
    return pd.DataFrame(rows, index=names)


def probability(p: float) -> str:
    """Write a p with two digits, tiny ones as a bound."""
    return NOTHING if math.isnan(p) else "<0.001" if p < 0.001 else f"{p:.2g}"


def per_session(comparison: Comparison) -> pd.DataFrame:
    """Write each session's labels, kind and start accuracy of every variant in percent, [sessions x columns]."""
    table = comparison.per_session.set_index("session")
    columns: dict[str, Iterable[str]] = {}
    if comparison.clock is not None:
        columns = {name: table[name].astype(str) for name in ("begins", "cell", "devices")}
    columns |= {
        "labels": [compact_labels(labels) for labels in table["labels"]],
        "kind": table["kind"],
    }
    for variant in comparison.table["variant"]:
        ending = comparison.layout.spread
        columns[variant] = _pair(table, f"{variant}_accuracy_start", 100, 2, ending)
    return pd.DataFrame(columns, index=table.index)


def caption(comparison: Comparison) -> str:
    """Say in one line what the headline table shows."""
    seeds = named_seeds(comparison.seeds, comparison.layout.interval)
    if not comparison.trained:
        return f"Latency and energy ({seeds})"
    if comparison.clock is not None:
        mine = comparison.detail[comparison.detail["in_scope"]]
        many = len(mine[["cell", "session"]].drop_duplicates())
        return f"Adaptation, {comparison.scope}, {many} in {mine['cell'].nunique()} cells ({seeds})"
    return f"Adaptation, {comparison.scope}: {ranges(comparison.sessions)} ({seeds})"


def _explanations(comparison: Comparison) -> list[str]:
    """Explain how to read the headline table, one sentence each."""
    seeds = " and seeds" if len(comparison.seeds) > 1 else ""
    what = f"the sessions{seeds}" if comparison.trained else f"the rounds{seeds}; totals are of whole runs"
    lines = [f"Numbers not called median are means over {what}."]
    if comparison.trained and comparison.targets:
        goal = comparison.targets[0]
        in_full = goal.named(comparison.reference, len(comparison.table) == 1)
        lines.append(
            f"{goal.short}: reached in the first training round with at least {in_full}, of the same seed. Time and"
            " energy count from the start of the session, probe rounds included."
        )
        if comparison.table["not_reached"].any():
            lines.append(
                "Where a session missed the target, > counts it with its whole length: a lower bound."
            )
        if comparison.reference is not None and len(comparison.table) > 1:
            lines.append(
                f"Time over {comparison.reference}'s: 2× takes twice as long to the target (J's speed-up of it). "
                "Accumulated gain: its accuracy minus the variant's, summed over the rounds of a session."
            )
    if comparison.layout.columns and {"dip", "recovery"} & {*comparison.layout.columns}:
        lines.append(
            "Dip: the last accuracy of the session before minus the lowest of this one. Recovery: training"
            " rounds until"
            " at most one point is missing of the level before (∞: not in this session)."
        )
    if comparison.tests["pairs"].gt(1).any():
        lines.append(
            f"Tests: each seed's mean minus that of {comparison.reference} on the same seed; p of the paired t"
            f" test (two"
            " sided; differences normal) and of Wilcoxon's signed-rank test (exact; with n pairs never below"
            " 2^(1-n));"
            " not corrected for the number of comparisons. Pairs in which a target was missed are left out."
        )
    return lines


def report(comparison: Comparison) -> Report:
    """Tell of a comparison."""
    title, name = caption(comparison), comparison.figure.stem
    table, small_print, further = headline(comparison), _explanations(comparison), _further_tables(comparison)
    by_target = targets(comparison)  # whoever asks for several wants to see them
    shown = [("", table.T), *([(TARGETS, by_target)] if len(by_target) else [])]
    hidden = [(title, frame) for title, frame in further.items() if title != TARGETS]
    notes = noted(comparison.notes)
    opening = "Accuracy (%) of the model that opens each session, before training"
    if comparison.trained:
        sessions = per_session(comparison)
        labels = ("labels " + sessions["labels"]).where(sessions["labels"] != "", "")
        columns = [sessions.index.astype(str), sessions["kind"], labels]
        if comparison.clock is not None:
            many = sessions["devices"] + sessions["devices"].map(
                lambda n: " device" if n == "1" else " devices"
            )
            columns = [sessions["begins"], "cell " + sessions["cell"], many, *columns[1:]]
        padded = [[text.ljust(max(map(len, column))) for text in column] for column in columns]
        about = ["  ".join(words) for words in zip(*padded, strict=True)]
        hidden.append((opening, sessions[list(comparison.table["variant"])].set_axis(about)))
    corner = "variant"
    if comparison.layout.transposed:
        table, corner = table.T, ""
    text = page(
        title,
        bullets(comparison.verdicts),
        markdown_table(table, corner),
        bullets([*small_print, *notes]),
        *(section(title, further_table, "") for title, further_table in further.items()),
        section(opening, sessions, "session") if comparison.trained else "",
        picture(name),
    )
    numbers = {"": comparison.table, "_sessions": comparison.per_session}
    some = {"_targets": comparison.to_targets, "_tests": comparison.tests}
    numbers |= {ending: frame for ending, frame in some.items() if len(frame)}
    return Report(
        comparison.out,
        score=comparison.score,
        verdicts=comparison.verdicts,
        caption=title,
        tables=shown,
        sentences=notes,
        further=hidden,
        small_print=small_print,
        look=[
            ("Figure", comparison.figure.name),
            ("More", f"{name}.md", f"; --explain prints {_rest(hidden)}"),
        ],
        emphasised=comparison.reference,
        numbers={f"{name}{ending}.csv": frame for ending, frame in numbers.items()},
        texts={f"{name}.md": text, f"{name}.tex": latex_table(title, table, corner.capitalize())},
    )


def _rest(hidden: Sequence[tuple[str, pd.DataFrame]]) -> str:
    """Name what the terminal does not show unasked."""
    return "how to read this, and each session" + (", with tests" if len(hidden) > 1 else "")


def _further_tables(comparison: Comparison) -> dict[str, pd.DataFrame]:
    """Write the tables that stand behind the headline where there are several targets or seeds: title -> table."""
    tables = {TARGETS: targets(comparison)}
    if comparison.reference is not None:
        tables[f"Differences to {comparison.reference}, paired by seed"] = tests(comparison)
    return {title: table for title, table in tables.items() if len(table)}


Columns = dict[str, tuple[str, list[str]]]  # name -> heading, cells


def _adaptation(comparison: Comparison, table: pd.DataFrame) -> Columns:
    ending = comparison.layout.spread
    columns: Columns = {
        "start": ("Accuracy at start (%)", _pair(table, "accuracy_start", 100, 2, ending)),
        "first": ("First 10 rounds (%)", _pair(table, "accuracy_first", 100, 2, ending)),
        "dip": ("Dip (points)", _pair(table, "dip", 100, 2, ending)),
        "recovery": ("Recovery (mean, rounds)", _pair(table, "recovery_rounds", 1, 1, ending)),
    }
    if not comparison.targets:
        return columns
    goal = comparison.targets[0].short
    energy, joules = unit_for(table["joules_to_target_at_least"], ENERGY_UNITS)
    time, seconds = unit_for(table["seconds_to_target_at_least"], TIME_UNITS)
    rows = [row for _, row in table.iterrows()]
    columns |= {
        "rounds": (f"Rounds to {goal} (median)", [_rounds(row) for row in rows]),
        "seconds": (
            f"Time to {goal} (mean, {time})",
            [_to_target(row, "seconds", seconds, ending) for row in rows],
        ),
        "joules": (
            f"Energy to {goal} (mean, {energy})",
            [_to_target(row, "joules", joules, ending) for row in rows],
        ),
        "missed": ("Not reached", [f"{row['not_reached']:.0f} of {row['targets']:.0f}" for row in rows]),
    }
    if comparison.reference is None or len(table) == 1:
        return columns
    others = [name != comparison.reference for name in table.index]
    ratios = [
        NOTHING if math.isnan(ratio) else f"{amount(ratio)}×".replace("∞×", "∞")
        for ratio in table["speed_up_seconds_median"]
    ]
    gains = _pair(table, "gain", 100, 1, ending)
    for name, heading, cells in (
        ("speed_up", f"Time over {comparison.reference}'s (median)", ratios),
        ("gain", "Accumulated gain (%)", gains),
    ):
        shown = [cell if other else NOTHING for cell, other in zip(cells, others, strict=True)]
        columns[name] = (heading, shown)
    return columns


def _cost_per_round(table: pd.DataFrame, layout: Layout) -> Columns:
    energy, joules = unit_for(table["round_energy_j_mean"], ENERGY_UNITS)
    time, seconds = unit_for(table["latency_s_mean"], TIME_UNITS)
    words = {
        "latency": (f"Round latency, slowest device ({time})", "latency_s", seconds),
        "latency_mean": (f"Round latency, mean device ({time})", "latency_mean_s", seconds),
        "round_energy": (f"Round energy ({energy})", "round_energy_j", joules),
    }
    return {
        name: (heading, _pair(table, column, 1 / size, None, layout.spread))
        for name, (heading, column, size) in words.items()
    }


def _totals(table: pd.DataFrame, layout: Layout) -> Columns:
    energy, joules = unit_for(table["energy_j_mean"], ENERGY_UNITS)
    time, seconds = unit_for(table["simulated_s_mean"], TIME_UNITS)
    ending = layout.spread
    return {
        "total_energy": (f"Total energy ({energy})", _pair(table, "energy_j", 1 / joules, None, ending)),
        "total_time": (f"Total time ({time})", _pair(table, "simulated_s", 1 / seconds, None, ending)),
    }


def _rounds(row: pd.Series) -> str:
    median, probes = row["rounds_to_target_median"], row["probe_rounds_mean"]
    if math.isnan(median):
        return NOTHING
    text = "not reached" if math.isinf(median) else f"{median:g}"
    return f"{text} (+{probes:.2g} probe)" if probes > 0 else text


def _to_target(row: pd.Series, kind: str, unit: float, ending: str) -> str:
    if row["not_reached"]:
        return f"> {amount(row[f'{kind}_to_target_at_least'] / unit)}"
    return with_spread(row[f"{kind}_to_target_mean"] / unit, row[f"{kind}_to_target_{ending}"] / unit)


def _pair(table: pd.DataFrame, name: str, scale: float, decimals: int | None, ending: str) -> list[str]:
    """Write cells from the columns name_mean and name_std, or name_ci."""
    return [
        with_spread(mean * scale, std * scale, decimals)
        for mean, std in zip(table[f"{name}_mean"], table[f"{name}_{ending}"], strict=True)
    ]
