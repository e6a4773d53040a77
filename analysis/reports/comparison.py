"""A study at a glance: every variant's adaptation and cost, over seeds, as tables, files and one figure."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from edgefl.analysis.figures.comparison import adaptation_figure, cost_figure
from edgefl.analysis.figures.curves import curves_figure
from edgefl.analysis.figures.pareto import pareto_figure
from edgefl.analysis.figures.sweep import words_of
from edgefl.analysis.measures import averages, metrics
from edgefl.analysis.measures.metrics import SESSION
from edgefl.analysis.measures.populations import notes_on, population_kinds
from edgefl.analysis.measures.results import Comparison
from edgefl.analysis.measures.scope import (
    common_seeds,
    have_rounds,
    own_notes,
    reference_of,
    scope_of,
    variants_of,
)
from edgefl.analysis.measures.service import services_of
from edgefl.analysis.measures.targets import Target, targets_of, usable
from edgefl.analysis.measures.transitions import transitions
from edgefl.analysis.measures.verdicts import verdicts
from edgefl.analysis.page.markup import csv_text
from edgefl.analysis.reports.comparison_words import check_columns, report
from edgefl.analysis.runs.choices import FIRST_ROUNDS, OVERLAP, PLAIN, Layout, Recurring
from edgefl.analysis.runs.clock import clock_of
from edgefl.analysis.runs.load import Paths, Runs
from edgefl.analysis.runs.servers import BY_ROUNDS, refuse_rounds, several_servers, without_rounds

FIGURE_NUMBERS = "comparison.csv"  # name of the PNG's text with the table


def compare(
    runs: Paths | Runs,
    *,
    out: str | Path | None = None,
    reference: str | None = None,
    target: str | float | Target | Iterable[str | float | Target] = "95%",
    recurring: Recurring = "labels",
    overlap: float = OVERLAP,
    layout: Layout = PLAIN,
) -> Comparison:
    """Compare variants, and write comparison.csv, .md, .tex, .png, .pdf and the tables behind them.

    Those are comparison_sessions.csv, _targets.csv (several targets), _tests.csv (paired tests over seeds), the
    curves over simulated time and energy, comparison_curves.png and .pdf, and, of several variants, what time against
    energy each needs, comparison_pareto.png and .pdf.

    Args:
        runs: a folder of run directories, several, or what `load_runs` made of it.
        out: where to write, by default the folder of the runs.
        reference: the variant whose peak accuracy relative targets are of, by default the one that the runs name.
        target: one or several: 0.8 is an accuracy, "95%" a share of that peak (rho of J 31), "95% of best" of the
            best variant's. The first one is the headline's.
        recurring: average over the sessions whose labels were seen before, or over those whose population was.
        overlap: from which on two populations are the same, see `populations.population_kinds`.
        layout: which columns the Markdown and LaTeX tables have, and which way round.

    Raises:
        ValueError: no completed run, no such reference, no seed that all variants share, a target or an overlap
            outside (0, 1], or a folder that cannot be written.
    """
    runs = Runs.of(runs)
    comparison, rounds = measure(
        runs, out=out, reference=reference, target=target, recurring=recurring, overlap=overlap, layout=layout
    )
    # the figure carries its numbers: whoever finds it can see whether they are still those of a run
    inside = {FIGURE_NUMBERS: csv_text(comparison.table)}
    replace(report(comparison), figures=_figures(comparison, rounds, runs), inside=inside).write()
    return comparison


def measure(
    runs: Paths | Runs,
    *,
    out: str | Path | None = None,
    reference: str | None = None,
    target: str | float | Target | Iterable[str | float | Target] = "95%",
    recurring: Recurring = "labels",
    overlap: float = OVERLAP,
    layout: Layout = PLAIN,
) -> tuple[Comparison, pd.DataFrame]:
    """Compare variants as `compare` does, and write nothing; returns the rounds of their common seeds too."""
    runs = Runs.of(runs)
    notes = [*runs.left_out, *runs.remarks, *own_notes(runs.info)]
    some = have_rounds(runs.info, runs.rounds)
    if not some.any():
        raise ValueError(f"the runs in {runs.path} have no rounds: simulate at least one session")
    check_columns(layout)
    several = several_servers(runs.info)
    for column in set(layout.columns).intersection(BY_ROUNDS):
        refuse_rounds(several, column)
    if several:
        notes.append(f"{several}: compared over seconds and joules, not over rounds")
    notes += [f"left out {path}: it has no rounds" for path in runs.info.loc[~some, "path"]]
    info = runs.info[some]
    seeds = common_seeds(info, notes)
    rounds = runs.rounds[runs.rounds["seed"].isin(seeds)]
    sessions = runs.sessions[runs.sessions["seed"].isin(seeds)]
    trained = bool(rounds["accuracy"].notna().any())
    reference = reference_of(info, reference, notes)
    names = variants_of(info, reference)
    targets = usable(targets_of(target), names, reference, notes if trained else [])

    if rounds["cell"].nunique() > 1:
        cells = rounds["cell"].nunique()
        notes.append(
            f"{cells} cells, each with sessions of its own: averaged within a seed, total energy added up"
        )
    if recurring == "labels":
        kinds = metrics.session_kinds(rounds, sessions)
    else:
        kinds = population_kinds(rounds, sessions, overlap=overlap)
        notes += notes_on(kinds, sessions, overlap)
    detail = _detail(kinds, rounds, sessions, reference, targets)
    scope = scope_of(detail, notes if trained else [], recurring)
    if trained:
        if listed := metrics.unpaired(detail, "labels"):
            notes.append(
                f"the variants met different labels in session {listed} of one seed: not a paired comparison"
            )
    else:
        notes.append("no run has an accuracy (runs without training): latency and energy only")
    variants = [name for name in names if name in set(detail["variant"])]
    totals = metrics.totals(rounds)
    in_scope = detail[detail["in_scope"]]
    folder, clock = runs.folder(out), clock_of(info)
    comparison = Comparison(
        score=runs.score,
        table=without_rounds(averages.of_variants(detail, totals, variants), several),
        per_session=averages.of_sessions(
            detail, variants, "recurring" if recurring == "labels" else "returning", clock, sessions
        ),
        to_targets=averages.to_targets(rounds, sessions, in_scope, variants, targets, reference),
        tests=averages.tests(detail, totals, variants, reference),
        detail=detail,
        figure=folder / "comparison.png",
        out=folder,
        reference=reference,
        targets=tuple(targets) if trained else (),
        layout=layout,
        seeds=tuple(seeds),
        sessions=tuple(
            sorted(int(session) for session in detail.loc[detail["in_scope"], "session"].unique())
        ),
        scope=scope,
        trained=trained,
        clock=clock,
        verdicts=verdicts(
            detail,
            totals,
            variants,
            reference,
            targets[0] if trained and targets else None,
            by_rounds=not several,
        ),
        by_rounds=not several,
        notes=tuple(notes),
    )
    return comparison, rounds


def _detail(
    detail: pd.DataFrame,
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    reference: str | None,
    targets: Sequence[Target],
) -> pd.DataFrame:
    """Gather every per-session metric beside the session's kind."""
    if targets:
        times = metrics.time_to_target(rounds, sessions, reference=reference, target=targets[0])
    else:  # how long sessions are, and how many probes they have
        times = metrics.time_to_target(rounds, sessions, reference=None, target=1.0)
        wanted = ["target_accuracy", *(f"{unit}_to_target" for unit in averages.UNITS)]
        times[wanted] = float("nan")
    parts = [
        metrics.accuracy_after_change(rounds, sessions),
        metrics.accuracy_first_rounds(rounds, FIRST_ROUNDS),
        times,
        transitions(rounds, sessions),
    ]
    if reference is not None:
        parts.append(metrics.speed_up(times, reference=reference))
        parts.append(metrics.accumulated_gain(rounds, reference=reference))
    for part in parts:
        detail = detail.merge(part, on=SESSION, how="left")
    if reference is None:
        detail[["speed_up_rounds", "speed_up_seconds", "speed_up_joules", "gain"]] = float("nan")
    return detail


def _pareto(comparison: Comparison) -> Figure:
    """Draw what the variants need for the target, or for a round, in time and energy."""
    table, target = comparison.table, comparison.targets[0] if comparison.targets else None
    names = ("seconds_to_target", "joules_to_target") if target else ("latency_s", "round_energy_j")
    time, energy = (table[f"{name}_{'at_least' if target else 'mean'}"] for name in names)
    missed = table["not_reached"].gt(0) & (target is not None)
    who = {"series": table["variant"], "label": table["variant"]}
    points = who | {"time_s": time, "energy_j": energy, "missed": missed}
    return pareto_figure(pd.DataFrame(points), (words_of(names[0], target), words_of(names[1], target)))


def _figures(comparison: Comparison, rounds: pd.DataFrame, runs: Runs) -> dict[str, Figure]:
    if comparison.trained:
        services = services_of(runs)
        figures = {
            "comparison": adaptation_figure(comparison, rounds, runs.sessions, services),
            "comparison_curves": curves_figure(comparison, rounds, services),
        }
    else:
        figures = {"comparison": cost_figure(comparison, rounds)}
    if len(comparison.table) > 1:
        figures["comparison_pareto"] = _pareto(comparison)
    return figures
