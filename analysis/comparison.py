"""A study at a glance: every variant's adaptation and cost, over seeds, as tables, files and one figure."""

from pathlib import Path

import pandas as pd

from analysis import metrics
from analysis.figures.comparison import adaptation_figure, cost_figure
from analysis.formatting import natural
from analysis.load import Runs, load_runs
from analysis.metrics import RUN, SESSION
from analysis.results import DIFFER, Comparison
from analysis.scope import FIRST_ROUNDS, common_seeds, have_rounds, own_notes, reference_of, scope_of
from analysis.tables.comparison import latex, markdown

FIGURE_NUMBERS = "comparison.csv"  # name of the PNG's text with the table
PER_SESSION = [
    *("accuracy_start", "accuracy_round_1", "accuracy_first"),
    *("rounds_to_target", "seconds_to_target", "joules_to_target", "probe_rounds", "gain"),
]
PER_RUN = [
    *("energy_j", "simulated_s", "latency_s", "latency_mean_s"),
    *("round_energy_j", "round_energy_rx_j", "round_energy_tx_j", "round_energy_compute_j"),
]


def compare(
    runs: str | Path | Runs,
    *,
    out: str | Path | None = None,
    reference: str | None = None,
    target: float = 0.95,
) -> Comparison:
    """Compare the variants of a study and write comparison.csv, .md, .tex, .png and comparison_sessions.csv.

    Args:
        runs: a folder of run directories, or what `load_runs` made of it.
        out: where to write, by default the folder of the runs.
        reference: the variant whose peak accuracy sets the target, by default the one that the runs name.
        target: rho of J (31), a share of that peak.

    Raises:
        ValueError: no completed run, no such reference, no seed that all variants share, a target outside
            (0, 1], or a folder that cannot be written.
    """
    runs = runs if isinstance(runs, Runs) else load_runs(runs)
    notes = [*runs.left_out, *own_notes(runs.info)]
    some = have_rounds(runs.info, runs.rounds)
    if not some.any():
        raise ValueError(f"the runs in {runs.path} have no rounds: simulate at least one session")
    notes += [f"left out {path}: it has no rounds" for path in runs.info.loc[~some, "path"]]
    info = runs.info[some]
    seeds = common_seeds(info, notes)
    rounds = runs.rounds[runs.rounds["seed"].isin(seeds)]
    sessions = runs.sessions[runs.sessions["seed"].isin(seeds)]
    trained = bool(rounds["accuracy"].notna().any())
    reference = reference_of(info, reference, notes)

    if rounds["cell"].nunique() > 1:
        cells = rounds["cell"].nunique()
        notes.append(
            f"{cells} cells, each with sessions of its own: averaged within a seed, total energy added up"
        )
    detail = _detail(rounds, sessions, reference, target)
    scope = scope_of(detail, notes if trained else [])
    if trained:
        _check_paired(detail, notes)
    else:
        notes.append("no run has an accuracy (runs without training): latency and energy only")
    variants = sorted(detail["variant"].unique(), key=lambda name: (name != reference, natural(name)))
    folder = Path(out) if out is not None else runs.path
    comparison = Comparison(
        table=_table(detail, metrics.totals(rounds), variants),
        per_session=_per_session(detail, variants),
        detail=detail,
        figure=folder / "comparison.png",
        out=folder,
        reference=reference,
        target=target,
        seeds=tuple(seeds),
        sessions=tuple(
            sorted(int(session) for session in detail.loc[detail["in_scope"], "session"].unique())
        ),
        scope=scope,
        trained=trained,
        notes=tuple(notes),
    )
    _write(comparison, rounds)
    return comparison


def _detail(
    rounds: pd.DataFrame, sessions: pd.DataFrame, reference: str | None, target: float
) -> pd.DataFrame:
    """Gather every per-session metric beside the session's kind."""
    times = metrics.time_to_target(rounds, sessions, reference=reference, target=target)
    parts = [
        metrics.accuracy_after_change(rounds, sessions),
        metrics.accuracy_first_rounds(rounds, FIRST_ROUNDS),
        times,
    ]
    if reference is not None:
        parts.append(metrics.speed_up(times, reference=reference))
        parts.append(metrics.accumulated_gain(rounds, reference=reference))
    detail = metrics.session_kinds(rounds, sessions)
    for part in parts:
        detail = detail.merge(part, on=SESSION, how="left")
    if reference is None:
        detail[["speed_up_rounds", "speed_up_seconds", "speed_up_joules", "gain"]] = float("nan")
    return detail


def _check_paired(detail: pd.DataFrame, notes: list[str]) -> None:
    """Note the sessions in which the variants met different labels."""
    sets = detail["labels"].map(lambda labels: frozenset(labels.split()))
    differing = sets.groupby([detail[column] for column in metrics.SPELL]).nunique()
    unpaired = sorted({int(session) for _, _, session in differing.index[differing > 1]})
    if unpaired:
        listed = ", ".join(map(str, unpaired))
        notes.append(
            f"the variants met different labels in session {listed} of one seed: not a paired comparison"
        )


def _table(detail: pd.DataFrame, totals: pd.DataFrame, variants: list[str]) -> pd.DataFrame:
    scope = detail[detail["in_scope"]]
    rows = []
    for variant in variants:
        spells, run = scope[scope["variant"] == variant], totals[totals["variant"] == variant]
        by_seed = spells.groupby(RUN)[PER_SESSION].mean()
        row: dict[str, object] = {"variant": variant, "seeds": len(run)}
        for column in PER_SESSION:
            row |= _mean_and_std(column, by_seed[column])
        timed = spells[spells["rounds_to_target"].notna()]
        missed = timed["rounds_to_target"] == float("inf")
        row["rounds_to_target_median"] = timed["rounds_to_target"].median()
        for unit, length in (("seconds", "session_s"), ("joules", "session_j")):
            spent = timed[f"{unit}_to_target"].mask(missed, timed[length])
            row[f"{unit}_to_target_at_least"] = spent.groupby(timed["seed"]).mean().mean()
        row |= {"not_reached": int(missed.sum()), "targets": len(timed)}
        for unit in ("rounds", "seconds", "joules"):
            row[f"speed_up_{unit}_median"] = spells[f"speed_up_{unit}"].median()
        for column in PER_RUN:
            row |= _mean_and_std(column, run[column])
        rows.append(row)
    return pd.DataFrame(rows)


def _mean_and_std(name: str, values: pd.Series) -> dict[str, float]:
    """Average over seeds; the deviation of one seed, or of something infinite, is unknown (NaN)."""
    mean = values.mean()
    spread = values.std(ddof=1) if abs(mean) < float("inf") else float("nan")
    return {f"{name}_mean": mean, f"{name}_std": spread}


def _per_session(detail: pd.DataFrame, variants: list[str]) -> pd.DataFrame:
    rows = []
    for session, group in detail.groupby("session"):
        texts = group["labels"].unique()
        row: dict[str, object] = {
            "session": session,
            "labels": texts[0] if len(texts) == 1 else DIFFER,
            "kind": "pilot" if group["pilot"].any() else "recurring" if group["recurring"].any() else "new",
        }
        for variant in variants:
            starts = group.loc[group["variant"] == variant].groupby("seed")["accuracy_start"].mean()
            row |= _mean_and_std(f"{variant}_accuracy_start", starts)
        rows.append(row)
    return pd.DataFrame(rows)


def _write(comparison: Comparison, rounds: pd.DataFrame) -> None:
    """Write all files of a comparison."""
    draw = adaptation_figure if comparison.trained else cost_figure
    try:
        comparison.out.mkdir(parents=True, exist_ok=True)
        comparison.table.to_csv(comparison.out / "comparison.csv", index=False)
        comparison.per_session.to_csv(comparison.out / "comparison_sessions.csv", index=False)
        (comparison.out / "comparison.md").write_text(markdown(comparison), encoding="utf-8")
        (comparison.out / "comparison.tex").write_text(latex(comparison), encoding="utf-8")
        # the figure carries its numbers: whoever finds it can see whether they are still those of a run
        numbers = {FIGURE_NUMBERS: comparison.table.to_csv(index=False)}
        draw(comparison, rounds).savefig(comparison.figure, metadata=numbers)
    except OSError as error:
        raise ValueError(
            f"cannot write to {comparison.out} ({error.strerror or error}): choose another folder with --out"
        ) from error
