"""A comparison in words and rounded numbers: the text tables behind the terminal, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import pandas as pd

if TYPE_CHECKING:
    from analysis.comparison import Comparison
    from analysis.settings import SettingsTable

NOTHING = "—"
RECURRING = "recurring sessions"  # a comparison's usual scope
DIFFER = "differ"  # labels of a session that are not the same in every seed and cell
ENERGY_UNITS = (("mJ", 1e-3), ("J", 1.0), ("kJ", 1e3), ("MJ", 1e6))
TIME_UNITS = (("ms", 1e-3), ("s", 1.0), ("h", 3600.0))
LATEX_SPECIALS = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    "±": r"$\pm$",
    "×": r"$\times$",
    "∞": r"$\infty$",
    "—": "---",
    "–": "--",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    ">": "$>$",
    "<": "$<$",
}


def headline(comparison: Comparison) -> pd.DataFrame:
    """[variants x columns] of text. The reference has no speed-up and gain of its own."""
    table = comparison.table.set_index("variant")
    columns = _adaptation(comparison, table) if comparison.trained else _cost_per_round(table)
    columns |= _totals(table)
    return pd.DataFrame(columns, index=table.index)


def per_session(comparison: Comparison) -> pd.DataFrame:
    """[sessions x columns] of text: labels, kind, and the start accuracy of every variant in percent."""
    table = comparison.per_session.set_index("session")
    columns: dict[str, Iterable[str]] = {
        "labels": [compact_labels(labels) for labels in table["labels"]],
        "kind": table["kind"],
    }
    for variant in comparison.table["variant"]:
        columns[variant] = _pair(table, f"{variant}_accuracy_start", 100, 2)
    return pd.DataFrame(columns, index=table.index)


def caption(comparison: Comparison) -> str:
    """What the headline table shows, in one line."""
    seeds = _named_seeds(comparison.seeds)
    if not comparison.trained:
        return f"Latency and energy ({seeds})"
    return f"Adaptation, {comparison.scope}: {numbers(comparison.sessions)} ({seeds})"


def explanations(comparison: Comparison) -> list[str]:
    """How to read the headline table, one sentence each, and the comparison's notes."""
    lines = []
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
                f"Speed-up: time to {share} % over that of {comparison.reference}, median. Accumulated gain: its "
                "accuracy minus the variant's, summed over the rounds of a session."
            )
    return lines + [f"Note: {note}." for note in comparison.notes]


def markdown(comparison: Comparison) -> str:
    """The whole comparison as a Markdown page."""
    parts = [f"# {caption(comparison)}", _markdown_table(headline(comparison), "variant")]
    parts.append("\n".join(f"- {line}" for line in explanations(comparison)))
    if comparison.trained:
        parts += ["## Accuracy (%) of the model that opens each session, before training"]
        parts += [_markdown_table(per_session(comparison), "session")]
    parts.append(f"![comparison]({comparison.figure.name})")
    return "\n\n".join(part for part in parts if part) + "\n"


def latex(comparison: Comparison) -> str:
    """The headline table as a LaTeX tabular, for the package booktabs."""
    table = headline(comparison).reset_index(names="Variant").map(_escape)
    head = [_escape(name) for name in table.columns]
    return _tabular(caption(comparison), "l" + "r" * (len(head) - 1), [head], table)


def settings(
    found: SettingsTable, cell: Callable[[str, bool], str] = lambda text, best: text
) -> pd.DataFrame:
    """[settings x (session, variant)] of text, accuracies in percent.

    Args:
        cell: makes a cell of a text, told whether it is the best of its setting and session.
    """
    columns: dict[str, list[str]] = {axis: [] for axis in found.axes}
    for labels, rows in found.table.groupby(list(found.axes), sort=False):
        for axis, label in zip(found.axes, labels, strict=True):
            columns[axis].append(cell(str(label), False))
        for row in rows.to_dict("records"):
            for variant in found.variants:
                text = _with_spread(100 * row[f"{variant}_mean"], 100 * row[f"{variant}_std"], 2)
                shown = cell(text, variant == row["best"])
                columns.setdefault(f"{row['session']}: {variant}", []).append(shown)
    return pd.DataFrame(columns)


def setting_names(found: SettingsTable) -> list[str]:
    """Of each setting, its labels in one line; numbers beside the name of their axis."""
    return [
        "  ".join(
            f"{axis} {label}" if _is_number(label) else str(label)
            for axis, label in zip(found.axes, labels, strict=True)
        )
        for labels in found.table[list(found.axes)].drop_duplicates().to_numpy().tolist()
    ]


def settings_caption(found: SettingsTable) -> str:
    """What the table of settings shows, in one line."""
    rounds, sessions = found.first_rounds, numbers(found.sessions)
    return f"Mean accuracy (%) over the first {rounds} rounds of sessions {sessions} ({_named_seeds(found.seeds)})"


def settings_explanations(found: SettingsTable) -> list[str]:
    """In how many settings the reference leads, where it does not, and the notes."""
    lines = []
    leads = found.table["lead"].dropna()
    if len(leads):
        behind = found.table[found.table["lead"] <= 0]
        lines.append(
            f"{found.reference} is ahead of all others in {int((leads > 0).sum())} of {len(leads)} pairs of setting "
            f"and session, by {100 * leads.median():.2f} points in the median."
        )
        for row in behind.to_dict("records"):
            where = ", ".join(f"{axis} {row[axis]}" for axis in found.axes)
            lines.append(
                f"Behind: {where}, session {row['session']}: {row['best']} by {-100 * row['lead']:.2f}."
            )
    return lines + [f"Note: {note}." for note in found.notes]


def settings_markdown(found: SettingsTable) -> str:
    """The table of settings as a Markdown page; the best of each session is bold."""
    table = settings(found, lambda text, best: f"**{text}**" if best else text).set_index(found.axes[0])
    parts = [f"# {settings_caption(found)}", _markdown_table(table, found.axes[0])]
    parts.append("\n".join(f"- {line}" for line in settings_explanations(found)))
    parts.append(f"![settings]({found.figure.name})")
    return "\n\n".join(parts) + "\n"


def settings_latex(found: SettingsTable) -> str:
    """The table of settings as a LaTeX tabular, for the package booktabs."""
    table = settings(found, lambda text, best: rf"\textbf{{{_escape(text)}}}" if best else _escape(text))
    count, width = len(found.axes), len(found.variants)
    sessions = [rf"\multicolumn{{{width}}}{{c}}{{Session {session}}}" for session in found.sessions]
    names = [_escape(name) for name in (*found.axes, *found.variants * len(found.sessions))]
    layout = "l" * count + "r" * (table.shape[1] - count)
    return _tabular(settings_caption(found), layout, [[""] * count + sessions, names], table)


def compact_labels(labels: str) -> str:
    """`0 1 2 3 7` as `0–3, 7`; labels that are no numbers are listed as they are."""
    words = labels.split()
    if not all(word.isdigit() for word in words):
        return ", ".join(words)
    return numbers(int(word) for word in words)


def numbers(values: Iterable[int]) -> str:
    """Whole numbers with runs of three or more shortened: `4, 5, 6, 9` as `4–6, 9`."""
    runs: list[list[int]] = []
    for value in sorted(set(values)):
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    texts = [f"{run[0]}–{run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs]
    return ", ".join(texts)


def percent_of(share: float) -> str:
    """0.95 as `95`, 0.975 as `97.5`."""
    return f"{100 * share:.4g}"


def amount(value: float, decimals: int | None = None) -> str:
    """About three significant digits or the given decimals, thousands separated, never an exponent."""
    if not math.isfinite(value):
        return "∞" if value > 0 else NOTHING
    return f"{value:,.{decimals_of(value) if decimals is None else decimals}f}"


def decimals_of(value: float) -> int:
    """Decimals that leave three significant digits; none above 100."""
    size = abs(value)
    return 0 if size == 0 or size >= 100 else 2 - math.floor(math.log10(size))


def unit_for(values: Iterable[float], units: tuple[tuple[str, float], ...]) -> tuple[str, float]:
    """The largest unit in which the largest finite value is at least 1."""
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    fitting = [unit for unit in units if largest >= unit[1]]
    return (fitting or [units[0]])[-1]


def _adaptation(comparison: Comparison, table: pd.DataFrame) -> dict[str, list[str]]:
    share = percent_of(comparison.target)
    energy, joules = unit_for(table["joules_to_target_at_least"], ENERGY_UNITS)
    time, seconds = unit_for(table["seconds_to_target_at_least"], TIME_UNITS)
    columns = {
        "Accuracy at start (%)": _pair(table, "accuracy_start", 100, 2),
        "First 10 rounds (%)": _pair(table, "accuracy_first", 100, 2),
        f"Rounds to {share} % (median)": [_rounds(row) for _, row in table.iterrows()],
        f"Time to {share} % ({time})": [_to_target(row, "seconds", seconds) for _, row in table.iterrows()],
        f"Energy to {share} % ({energy})": [_to_target(row, "joules", joules) for _, row in table.iterrows()],
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
    columns["Speed-up (time)"] = [
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
    return _with_spread(row[f"{kind}_to_target_mean"] / unit, row[f"{kind}_to_target_std"] / unit)


def _pair(table: pd.DataFrame, name: str, scale: float, decimals: int | None = None) -> list[str]:
    """Cells from the columns name_mean and name_std."""
    return [
        _with_spread(mean * scale, std * scale, decimals)
        for mean, std in zip(table[f"{name}_mean"], table[f"{name}_std"], strict=True)
    ]


def _with_spread(mean: float, std: float, decimals: int | None = None) -> str:
    if math.isnan(mean):
        return NOTHING
    decimals = decimals_of(mean) if decimals is None else decimals
    text = amount(mean, decimals)
    return text if math.isnan(std) else f"{text} ± {amount(std, decimals)}"


def _markdown_table(table: pd.DataFrame, corner: str) -> str:
    lines = [[corner, *table.columns], ["---"] * (1 + table.shape[1])]
    lines += [[str(name), *row] for name, row in zip(table.index, table.to_numpy().tolist(), strict=True)]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines
    )


def _tabular(caption: str, layout: str, head: Sequence[Sequence[str]], body: pd.DataFrame) -> str:
    """A LaTeX tabular of escaped cells, for the package booktabs."""
    above, below = ([" & ".join(row) + r" \\" for row in rows] for rows in (head, body.to_numpy().tolist()))
    lines = [
        f"% {caption}; needs \\usepackage{{booktabs}}",
        rf"\begin{{tabular}}{{{layout}}}",
        r"\toprule",
        *above,
        r"\midrule",
        *below,
        r"\bottomrule",
        r"\end{tabular}",
    ]
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return "".join(LATEX_SPECIALS.get(sign, sign) for sign in text)


def _named_seeds(seeds: Sequence[int]) -> str:
    return f"{len(seeds)} seeds, mean ± standard deviation" if len(seeds) > 1 else f"seed {seeds[0]}"


def _is_number(label: object) -> bool:
    try:
        float(str(label))
    except ValueError:
        return False
    return True
