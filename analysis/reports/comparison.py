"""Compare the adaptation and cost of a study's variants over seeds, in tables, files and figures."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import pandas as pd
import typer
from matplotlib.figure import Figure

from edgefl.analysis.figures.comparison import adaptation_figure, cost_figure
from edgefl.analysis.figures.curves import curves_figure
from edgefl.analysis.figures.pareto import pareto_figure
from edgefl.analysis.figures.sweep import words_of
from edgefl.analysis.measures import averages, metrics
from edgefl.analysis.measures.further import further
from edgefl.analysis.measures.results import OF_ROUND, TO_TARGET, Comparison
from edgefl.analysis.measures.scope import (
    SideBySide,
    check_overlap,
    notes_on,
    on_power,
    own_notes,
    own_seeds,
    population_kinds,
    roundless,
    scope_of,
)
from edgefl.analysis.measures.service import services_of
from edgefl.analysis.measures.targets import Target, apart, targets_of, untrained, with_peaks
from edgefl.analysis.measures.unlike import identical, unlike
from edgefl.analysis.measures.verdicts import first_of, on_further_target, ratios, stops, verdicts
from edgefl.analysis.page.formatting import count_of, did_you_mean
from edgefl.analysis.page.markup import csv_text, latex_table, markdown_table, section
from edgefl.analysis.page.report import Report, reporting
from edgefl.analysis.reports import comparison_tables as tables
from edgefl.analysis.runs.choices import (
    COLUMNS,
    OVERLAP,
    TARGET,
    Columns,
    Interval,
    Layout,
    Names,
    Out,
    Overlap,
    Partial,
    Recurring,
    Reference,
    Transpose,
)
from edgefl.analysis.runs.clock import clock_of
from edgefl.analysis.runs.load import Paths, Runs, given_runs, load_runs
from edgefl.analysis.runs.scenario_keys import of_points
from edgefl.analysis.runs.servers import BY_ROUNDS, refuse_rounds, several_servers, without_rounds

FIGURE_NUMBERS = "comparison.csv"  # name of the PNG's text with the table
OPENING = "Accuracy (%) of the model that opens each session, before training"
TARGETS = "Cost of each target (median rounds, mean time and energy)"
Targets = Annotated[
    str | float | Target | Iterable[str | float | Target],
    typer.Option(help=f"{TARGET}; may be repeated."),
    list[str] | None,
]
RecurringBy = Annotated[
    Recurring, typer.Option(help="Average over sessions whose labels, or whose population, were seen before.")
]


@reporting
def compare(
    *runs: Paths | Runs,
    partial: Partial = False,
    names: Names = (),
    out: Out = None,
    reference: Reference = None,
    target: Targets = "95%",
    columns: Columns = (),
    transposed: Transpose = False,
    interval: Interval = False,
    recurring: RecurringBy = "labels",
    overlap: Overlap = OVERLAP,
) -> Comparison:
    """Compare variants, and write comparison.csv, .md, .tex, .png, .pdf and other files.

    The other files are comparison_sessions.csv, _targets.csv (with several targets), _tests.csv (paired tests over
    seeds), and as .png and .pdf comparison_curves (over simulated time and energy) and, with several variants,
    comparison_pareto (time against energy). Without `out`, files for targets other than the default go into a folder
    of their own, such as target-0.8.

    Args:
        runs: folders of studies or runs, or runs that have been read.
        partial: whether to include incomplete runs.
        names: names to show instead of the folders' names, in the order of the folders.
        out: folder to write, or None for the folder of the runs or, with several folders, `comparison` next to them.
        reference: variant with which other variants are compared, or None for the study's reference.
        target: one or several target accuracies: 0.8, or a share of a best accuracy: `95%` (the reference's),
            `95% of NAME`, `95% of best`.
        columns: names of the table's columns, in this order; by default all columns that apply.
        transposed: whether tables in LaTeX and Markdown have a column per variant.
        interval: whether to show 95 % intervals instead of standard deviations.
        recurring: what a session must have in common with an earlier session to be averaged: labels or population.
        overlap: two sessions have the same population if the Jaccard index of their devices is at least this number.

    Returns:
        The comparison: `.table`, `.per_session` and `.detail` are data frames, `.plot()` draws, `.figure` is a PNG
        file, and `.out` is the folder with all files. A notebook shows verdicts, table and figure.

    Raises:
        ValueError: no run is completed, the reference is unknown, no seed is common to all variants, a target or the
            overlap is outside (0, 1], or the folder cannot be written.
    """
    given = given_runs(runs, load_runs, names=names, partial=partial)
    layout = Layout(columns, transposed, interval)
    notes = _notes(given, layout)
    both = SideBySide.of(given, reference, notes)
    targets = with_peaks(targets_of(target), both.variants, both.reference)
    if not both.rounds["accuracy"].notna().any():
        notes.append(untrained(target, "only latency and energy are compared"))
    notes += identical(both.rounds, both.info)
    kinds, folder = _kinds(both, recurring, overlap, notes), given.folder(out, apart(target))
    detail = averages.with_metrics(kinds, both.rounds, both.sessions, both.reference, targets)
    return _compared(given, both, detail, targets, recurring, layout=layout, out=folder, notes=notes)


def _compared(
    given: Runs,
    both: SideBySide,
    detail: pd.DataFrame,
    targets: Sequence[Target],
    recurring: Recurring,
    *,
    layout: Layout,
    out: Path,
    notes: list[str],
) -> Comparison:
    """Return the comparison of runs, given the metrics of their sessions; append its notes to `notes`."""
    rounds, sessions, reference = both.rounds, both.sessions, both.reference
    trained = bool(rounds["accuracy"].notna().any())
    scope = scope_of(detail, notes if trained else [], recurring)
    variants = [name for name in both.variants if name in set(detail["variant"])]
    totals, clock, in_scope = metrics.totals(rounds), clock_of(both.info), detail[detail["in_scope"]]
    several, base = several_servers(given.info), reference or variants[0]
    again = "recurring" if recurring == "labels" else "returning"
    goal = targets[0] if trained and targets else None
    if trained:
        notes += unlike(detail, rounds, target=bool(targets), by_rounds=not several)
    found = ratios(detail, totals, variants, base, goal)
    table = averages.of_variants(detail, totals, variants).join(_shown(found, base, goal), on="variant")
    return Comparison(
        score=given.score,
        table=without_rounds(table, several),
        per_session=averages.of_sessions(detail, variants, again, clock, sessions),
        to_targets=averages.to_targets(rounds, sessions, in_scope, variants, targets, reference),
        tests=averages.tests(detail, totals, variants, reference),
        detail=detail,
        out=out,
        reference=reference,
        targets=tuple(targets) if trained else (),
        layout=layout,
        seeds=tuple(both.seeds),
        own_seeds=own_seeds(both.info, both.seeds),
        scope=scope,
        clock=clock,
        verdicts=(
            *verdicts(detail, found, base, goal, by_rounds=not several, first=first_of(rounds, detail)),
            *(
                on_further_target(rounds, sessions, in_scope, variants, base, further, reference)
                for further in (targets[1:] if goal else ())
            ),
            *stops(both.info[both.info["seed"].isin(both.seeds)], rounds, variants),
        ),
        notes=tuple(notes),
        runs=given,
        rounds=rounds,
    )


def _shown(found: pd.DataFrame, base: str, goal: Target | None) -> pd.DataFrame:
    """Return the ratios that the table shows; ratios of bounds are given in words only."""
    shown = found.drop(columns=["missed", "of"])
    return shown.where((found["missed"] == 0) & (found.loc[base, "missed"] == 0)) if goal else shown


def _notes(given: Runs, layout: Layout) -> list[str]:
    """Return notes on omissions; refuse unknown columns, and columns that need a single server."""
    without, several = roundless(given), several_servers(given.info)
    for name in layout.columns:
        if name not in COLUMNS:
            raise ValueError(f"no column '{name}'{did_you_mean(name, COLUMNS)}")
    for column in set(layout.columns).intersection(BY_ROUNDS):
        refuse_rounds(several, column)
    return [
        *given.left_out,
        *given.remarks,
        *own_notes(given.info),
        *on_power(of_points(given.info).values()),
        *(
            f"{name}: {told}"
            for name in given.info["variant"].unique()
            for _, _, told in further(given, name)
        ),
        *[f"{several}: compared over seconds and joules, not over rounds"] * bool(several),
        *(f"left out {path}: it has no rounds" for path in without),
    ]


def _kinds(both: SideBySide, recurring: Recurring, overlap: float, notes: list[str]) -> pd.DataFrame:
    """Determine which sessions are pilots and which recur, by their labels or their populations."""
    cells = both.rounds["cell"].nunique()
    if cells > 1:
        notes.append(
            f"{cells} cells, each with its own sessions: seconds and joules of a session are means"
            " over cells; only the energy of a run is a sum over cells"
        )
    check_overlap(overlap)
    if recurring == "labels":
        return metrics.session_kinds(both.rounds, both.sessions)
    kinds = population_kinds(both.rounds, both.sessions, overlap=overlap)
    notes += notes_on(kinds, both.sessions, overlap)
    return kinds


def caption(comparison: Comparison) -> str:
    """Return the caption of the headline table."""
    seeds = comparison.named_seeds(comparison.layout.interval)
    if not comparison.trained:
        return f"Latency and energy ({seeds})"
    goal = comparison.target
    what = f"Time and energy to {goal.short}" if goal else "Accuracy and cost"
    if comparison.clock is not None:
        many, cells = comparison.in_scope
        return f"{what}, {comparison.scope}, {many} in {count_of(cells, 'cell')} ({seeds})"
    return f"{what} in {comparison.sessions_in_words} ({seeds})"


def _explanations(comparison: Comparison) -> list[str]:
    """Return sentences that explain how to read the headline table."""
    seeds = " and seeds" if len(comparison.seeds) > 1 else ""
    what = f"the sessions{seeds}" if comparison.trained else f"the rounds{seeds}; totals are of whole runs"
    lines = [f"Numbers not called median are means over {what}."]
    if goal := comparison.target:
        in_full = goal.named(comparison.reference, len(comparison.table) == 1)
        lines.append(
            f"{goal.short} is reached in the first training round with at least {in_full}, seed by seed. Time and"
            " energy count from the start of the session, probe rounds included; energy includes the radio tails that"
            " would follow if the run ended there."
        )
        if comparison.table["not_reached"].any():
            lines.append(
                "A value after > is a lower bound: sessions that missed the target count with their whole length."
            )
    if len(comparison.table) > 1:
        lines.append(
            f"A ratio is a variant's cost divided by that of {comparison.base}, in pairs of the same seed (geometric"
            " mean), as in the sentences above; 2 means twice the cost."
        )
    if comparison.layout.columns and {"gain", "speed_up"} & {*comparison.layout.columns}:
        lines.append(
            f"The speed-up is the median over sessions of the variant's time divided by that of"
            f" {comparison.reference} (J, Table VII). The accumulated gain is {comparison.reference}'s accuracy minus"
            " the variant's accuracy, summed over a session's rounds (J, 32)."
        )
    if comparison.layout.columns and {"dip", "recovery"} & {*comparison.layout.columns}:
        lines.append(
            "The dip is the last accuracy of the previous session minus the lowest accuracy of this session. Recovery"
            " is the number of training rounds until accuracy is within one point of that last accuracy (∞: never)."
        )
    if comparison.tests["pairs"].gt(1).any():
        lines.append(
            f"Tests compare each seed's mean with that of {comparison.reference} for the same seed: the paired t test"
            " (two-sided, for normal differences) and Wilcoxon's signed-rank test (exact; with n pairs p is at least"
            " 2^(1-n)), not corrected for the number of comparisons. Pairs in which a target was missed are left out."
            " Tests compare differences; intervals of ratios are computed from logarithms, so the two may disagree."
        )
    return lines


def report(comparison: Comparison) -> Report:
    """Return the report of a comparison."""
    title, table = caption(comparison), tables.headline(comparison)
    # tables that are empty without several targets or seeds
    further = {TARGETS: tables.targets(comparison)}
    if comparison.reference is not None:
        further[f"Differences from {comparison.reference}, paired by seed"] = tables.tests(comparison)
    further = {words: frame for words, frame in further.items() if len(frame)}
    # several requested targets are shown
    shown = [("", tables.brief(comparison)), *([(TARGETS, further[TARGETS])] if TARGETS in further else [])]
    hidden = [("All columns", table)] * (not comparison.layout.columns)
    hidden += [(title, frame) for title, frame in further.items() if title != TARGETS]
    below = [section(title, frame, "") for title, frame in further.items()]
    if comparison.trained:
        sessions = tables.per_session(comparison)
        hidden.append((OPENING, tables.in_lines(comparison, sessions)))
        below.append(section(OPENING, sessions, "session"))
    turned, corner = (table.T, "") if comparison.layout.transposed else (table, "variant")
    some = {"_targets": comparison.to_targets, "_tests": comparison.tests}
    tests = ", with tests" if len(hidden) > 1 else ""
    return Report.of(
        comparison,
        title,
        verdicts=comparison.verdicts,
        tables=shown,
        further=hidden,
        small_print=_explanations(comparison),
        look=[
            ("Figure", "comparison.png"),
            ("More", "comparison.md", f"; --explain prints how to read this, and each session{tests}"),
        ],
        further_numbers={
            "_sessions": comparison.per_session,
            **{ending: frame for ending, frame in some.items() if len(frame)},
        },
        above=[markdown_table(turned, corner)],
        below=below,
        latex=latex_table(title, turned, corner.capitalize()),
        # the figure's file contains its numbers, so that a reader can compare them with a run
        inside={FIGURE_NUMBERS: csv_text(comparison.table)},
    )


def figures(comparison: Comparison) -> dict[str, Figure]:
    """Draw adaptation and curves or, without training, costs; with several variants, draw time against energy."""
    if comparison.trained:
        services = services_of(comparison.runs)
        drawn = {
            "comparison": adaptation_figure(comparison, services),
            "comparison_curves": curves_figure(comparison, services),
        }
    else:
        drawn = {"comparison": cost_figure(comparison)}
    if len(comparison.table) > 1:
        points, words = _points(comparison)
        if points["time_s"].notna().any():  # all NaN if rounds of variants differ in meaning
            drawn["comparison_pareto"] = pareto_figure(points, words)
    return drawn


def _points(comparison: Comparison) -> tuple[pd.DataFrame, tuple[str, str]]:
    """Return each variant's time and energy, to the target or per round, and the names of the two quantities."""
    table, target = comparison.table, comparison.target
    names = TO_TARGET if target else OF_ROUND
    time, energy = (table[f"{name}_{'at_least' if target else 'mean'}"] for name in names)
    missed = table["not_reached"].gt(0) & (target is not None)
    who = {"series": table["variant"], "label": table["variant"]}
    points = who | {"time_s": time, "energy_j": energy, "missed": missed}
    return pd.DataFrame(points), (words_of(names[0], target), words_of(names[1], target))
