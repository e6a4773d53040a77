"""Answer which of two variants is better in a study, by how much, and with what confidence."""

import itertools
import json
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from edgefl.analysis.figures.style import INK, PALETTE, SMALL, SOFT, panels
from edgefl.analysis.measures import averages, metrics
from edgefl.analysis.measures.scope import scope_of
from edgefl.analysis.measures.sequential import Interval, interval, pairs_wanted
from edgefl.analysis.measures.targets import target_of
from edgefl.analysis.page.formatting import amount, amount_beside, numbered, ranges
from edgefl.analysis.page.markup import markdown_escape, markdown_table
from edgefl.analysis.page.report import Report
from edgefl.analysis.runs.load import Runs, Setting, load_settings, named
from edgefl.analysis.runs.reading import EXACT
from edgefl.analysis.runs.scenario_keys import METRICS, refuse_rounds, several_servers

HIGHER_IS_BETTER = ("accuracy_end", "accuracy_first", "accuracy_start")
TO_TARGET = tuple(f"{kind}_to_target" for kind in metrics.KINDS)
OF_RUN = ("energy_j", "simulated_s", "latency_s")
UNDECIDED = "undecided"
TABLE, ABOUT = "question.csv", "question.json"  # an answer's table, and its other fields
NUMBERS = ("mean", "low", "high", "deviation")


@dataclass(frozen=True)
class Question:
    """The question, with the same fields as `question` in a study file."""

    metric: str
    variants: tuple[str, str]
    precision: float
    budget: int
    error: float = 0.05
    target: str | float | None = None


@dataclass(frozen=True)
class Answer:
    """The result of comparing two variants in pairs.

    Attributes:
        table: one row per setting: the axes' labels; pairs, mean, low, high (of the first variant's metric minus the
            second variant's, accuracies 0..1), deviation (standard, over pairs), better (a variant, or `undecided`),
            why (the reason why the question ended: precise, budget, or what is missing; empty while it is open).
        seeds_wanted: how many seeds each row needs in total; the present number if the row needs no more.
        sentence: the answer in one sentence.
        notes: facts that a reader must know, one sentence each.
    """

    question: Question
    axes: tuple[str, ...]
    table: pd.DataFrame = field(repr=False)
    seeds_wanted: tuple[int, ...] = field(repr=False)
    sentence: str
    notes: tuple[str, ...]

    @property
    def settled(self) -> bool:
        """Whether the question is answered, so that no setting needs more seeds."""
        return bool((self.table["why"] != "").all())

    def wanted(self) -> dict[Setting, int]:
        """Return the number of seeds that each setting needs."""
        labels = self.table[list(self.axes)].itertuples(index=False, name=None)
        settings = [tuple(zip(self.axes, row, strict=True)) for row in labels] if self.axes else [()]
        return dict(zip(settings, self.seeds_wanted, strict=True))


def answer(
    path: str | Path, question: Question, seeds: Mapping[Setting, Sequence[int]], reference: str | None = None
) -> Answer:
    """Compare the two variants, paired by seed, and estimate how many seeds a decision needs.

    Args:
        path: the study's directory.
        seeds: the seeds of each setting; an incomplete pair is left out, with a note.
        reference: a relative target is a share of this variant's best accuracy.

    Raises:
        ValueError: no run is completed, or a variant of the question is unknown.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # unfinished and failed runs are noted as missing pairs
        by_setting = load_settings(path)
    error = question.error / len(seeds)  # error probabilities of all settings sum to `question.error`
    rows, notes = [], []
    for setting, wanted_seeds in seeds.items():
        values = _values(by_setting[setting], question, reference) if setting in by_setting else _NOTHING
        row, note = _row(question, values, wanted_seeds, error)
        rows.append({**dict(setting), **row})
        if note:
            notes.append(f"{named(setting)}: {note}" if setting else note)
    table = pd.DataFrame(rows)
    more = tuple(table.pop("seeds_wanted").tolist())
    axes = tuple(axis for axis, _ in next(iter(seeds)))
    return Answer(question, axes, table, more, _sentence(question, table), tuple(notes))


def write(answered: Answer, folder: Path) -> list[Path]:
    """Write question.csv, .md and .json, and for a grid the map as question.png and .pdf; return the figures."""
    table, axes, question = answered.table, list(answered.axes), answered.question
    about: dict[str, object] = {"question": asdict(question)}
    about |= {name: getattr(answered, name) for name in ("axes", "seeds_wanted", "sentence", "notes")}
    names = [", ".join(map(str, row)) for row in table[axes].itertuples(index=False, name=None)]
    numbers = table.drop(columns=axes).set_axis(names or ["all"]).round(6).astype(str)
    lines = [markdown_escape(line) for line in (answered.sentence, *answered.notes)]
    text = [lines[0], "", markdown_table(numbers, ", ".join(axes)), "", *lines[1:], ""]
    drawn = question_figure(table, axes, question.variants, _words(question)[0]) if axes else None
    report = Report(
        folder,
        numbers={TABLE: table},
        texts={ABOUT: json.dumps(about, indent=2) + "\n", "question.md": "\n".join(text)},
        figures={} if drawn is None else {"question": drawn},
    ).write()
    return [] if report.figure is None else [report.figure]


def read(folder: Path) -> Answer | None:
    """Read a written answer, or return None if there is none.

    Raises:
        ValueError: the answer is damaged; the error names the file.
    """
    if not (folder / ABOUT).exists():
        return None
    try:
        return _read(folder)
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{folder / ABOUT}, or {TABLE} beside it, is damaged ({error}): repeat the study's command to "
            "write both again"
        ) from error


def _read(folder: Path) -> Answer:
    told = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    question = told.pop("question")
    texts = dict.fromkeys([*told["axes"], "better", "why"], str)
    unknown = {name: [""] for name in NUMBERS}
    table = pd.read_csv(folder / TABLE, dtype=texts, keep_default_na=False, na_values=unknown, **EXACT)
    return Answer(
        question=Question(**question | {"variants": tuple(question["variants"])}),
        axes=tuple(told["axes"]),
        table=table,
        seeds_wanted=tuple(told["seeds_wanted"]),
        sentence=told["sentence"],
        notes=tuple(told["notes"]),
    )


def _words(question: Question) -> tuple[str, float]:
    """Return the unit in which a difference is printed, and the factor from the metric's unit to it."""
    if question.metric in HIGHER_IS_BETTER:
        return "percentage points", 100.0
    return {"rounds_to_target": "rounds", "joules_to_target": "J", "energy_j": "J"}.get(
        question.metric, "s"
    ), 1.0


_NOTHING = pd.Series(dtype=float, index=pd.MultiIndex.from_arrays([[], []], names=metrics.RUN))


def _values(runs: Runs, question: Question, reference: str | None) -> pd.Series:
    """Return the metric of each run; inf if a session missed the target, NaN if there is nothing to measure."""
    rounds, sessions, metric = runs.rounds, runs.sessions, question.metric
    if metric in METRICS:
        asked = runs.info[runs.info["variant"].isin(question.variants)]
        refuse_rounds(several_servers(asked), metric)
    if metric in OF_RUN:
        return metrics.totals(rounds).set_index(metrics.RUN)[metric]
    goals = [target_of(question.target or "95%")] if metric in TO_TARGET else []
    kinds = metrics.session_kinds(rounds, sessions)
    kinds = kinds[kinds["variant"].isin(question.variants)]  # sessions count that these two share
    detail = averages.with_metrics(kinds, rounds, sessions, reference, goals)
    scope_of(detail, [])
    if metric == "accuracy_end":
        training = metrics.training_rounds(rounds).sort_values("start_s")
        last = training.groupby(metrics.SESSION)["accuracy"].last().rename(metric)
        detail = detail.merge(last.reset_index(), on=metrics.SESSION, how="left")
    by_run = detail[detail["in_scope"]].groupby(metrics.RUN)
    return by_run[metric].agg(lambda values: values.mean(skipna=False))


def _row(
    question: Question, values: pd.Series, seeds: Sequence[int], error: float
) -> tuple[dict[str, object], str]:
    known = values.index.get_level_values("variant")
    both = (values[known == name].droplevel("variant") for name in question.variants)
    first, second = (own.reindex(list(seeds)) for own in both)
    pairs = first.notna() & second.notna()
    missed = pairs & ~(np.isfinite(first) & np.isfinite(second))
    note = ""
    if missed.any():
        note = (
            f"the target was missed with {numbered('seed', first.index[missed])}, so there is no difference to"
            " measure: set a lower target, or compare accuracy_first"
        )
    elif not pairs.all():
        note = f"the answer leaves out incomplete pairs: {numbered('seed', first.index[~pairs])}"
    usable = pairs & ~missed
    seen = interval((first - second)[usable], error)
    if missed.any():
        seen = Interval(seen.pairs, math.nan, math.nan, math.inf)
    why = ""  # the question is open
    if seen.half_width <= question.precision:
        why = "precise"
    elif note:
        why = "pairs are missing"
    elif len(seeds) >= question.budget:
        why = "budget"
    return {
        "pairs": seen.pairs,
        **{name: getattr(seen, name) for name in NUMBERS},
        "better": _better(question, seen),
        "why": why,
        "seeds_wanted": len(seeds) if why else pairs_wanted(seen, question.precision, error, question.budget),
    }, note


def _better(question: Question, seen: Interval) -> str:
    if not seen.low > 0 and not seen.high < 0:
        return UNDECIDED
    first_is_higher = seen.low > 0
    return question.variants[0 if first_is_higher == (question.metric in HIGHER_IS_BETTER) else 1]


def _sentence(question: Question, table: pd.DataFrame) -> str:
    one, other = question.variants
    sure = f"{100 * (1 - question.error):g} %"
    metric = question.metric + (f" ({question.target})" if question.target is not None else "")
    if len(table) > 1:
        counts = [int((table["better"] == name).sum()) for name in (one, other, UNDECIDED)]
        seeds = ranges(table["pairs"].unique())
        return (
            f"{metric}: {one} is better than {other} in {counts[0]} of {len(table)} settings, worse in {counts[1]}, "
            f"undecided in {counts[2]} ({sure} confidence for all settings together; {seeds} pairs of runs)."
        )
    row = table.iloc[0]
    unit, scale = _words(question)
    if not math.isfinite(row["high"]):
        return f"{metric}: no answer from {row['pairs']} pairs of {one} and {other}."
    low, high = (amount(scale * row[key]) for key in ("low", "high"))
    mean = amount_beside(scale * row["mean"], scale * (row["high"] - row["low"]) / 2)
    end = f"{row['better']} is better" if row["better"] != UNDECIDED else "it is undecided which is better"
    return (
        f"{metric} of {one} minus that of {other} is {mean} {unit} ({sure} interval {low} to {high}; "
        f"{row['pairs']} pairs of runs): {end}."
    )


# colours for the first variant, the second, and neither; in greyscale, text distinguishes them
TINTS = ("#9ecae1", "#fdd49e", "#ffffff")


def question_figure(table: pd.DataFrame, axes: Sequence[str], variants: tuple[str, str], unit: str) -> Figure:
    """Draw the difference in each setting of an answer's table, with its interval and the better variant."""
    scale = 100.0 if unit == "percentage points" else 1.0
    title = f"{variants[0]} minus {variants[1]} ({unit})"
    draw = _map if len(axes) == 2 else _intervals
    return draw(table, axes, variants, scale, title)


def _map(
    table: pd.DataFrame, axes: Sequence[str], variants: tuple[str, str], scale: float, title: str
) -> Figure:
    across, down = (list(dict.fromkeys(table[axis])) for axis in axes)
    figure, (ax,) = panels(1, 0.9 + 0.5 * len(down))
    for i, j in itertools.product(range(len(across)), range(len(down))):
        own = table[(table[axes[0]] == across[i]) & (table[axes[1]] == down[j])]
        if own.empty:
            continue
        row = own.iloc[0]
        tint = TINTS[variants.index(row["better"])] if row["better"] in variants else TINTS[2]
        hatch = None if row["better"] in variants else "...."
        square = Rectangle(
            (i - 0.5, j - 0.5), 1, 1, facecolor=tint, hatch=hatch, edgecolor=SOFT, linewidth=0.5
        )
        ax.add_patch(square)
        half = scale * (row["high"] - row["low"]) / 2
        text = f"{amount_beside(scale * row['mean'], half)} ± {amount(half)}\n{row['better']}"
        ax.text(i, j, text, ha="center", va="center", fontsize=SMALL - 1, color=INK)
    ax.set_xlim(-0.5, len(across) - 0.5)
    ax.set_ylim(-0.5, len(down) - 0.5)
    ax.set_xticks(range(len(across)), across)
    ax.set_yticks(range(len(down)), down)
    ax.grid(False)
    ax.set_xlabel(axes[0])
    ax.set_ylabel(axes[1])
    ax.set_title(title, fontsize=SMALL, color=INK, loc="left")
    return figure


def _intervals(
    table: pd.DataFrame, axes: Sequence[str], variants: tuple[str, str], scale: float, title: str
) -> Figure:
    names = [", ".join(map(str, row)) for row in table[list(axes)].itertuples(index=False, name=None)]
    figure, (ax,) = panels(1, 0.9 + 0.22 * len(names))
    known = table["high"].abs() < float("inf")
    for place, (_, row) in enumerate(table.iterrows()):
        if known.loc[row.name]:
            which = variants.index(row["better"]) if row["better"] in variants else 2
            colour, marker = (*PALETTE[:2], SOFT)[which], "osx"[which]
            ax.plot([scale * row["low"], scale * row["high"]], [place, place], color=colour, linewidth=1.2)
            ax.plot(scale * row["mean"], place, marker=marker, color=colour, markersize=4)
    ax.axvline(0, color=INK, linewidth=0.7)
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlabel(title)
    ax.set_ylabel(", ".join(axes))
    return figure
