"""The variants of a study side by side in every setting of its grid, as the papers' large tables print them."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.results import SettingsTable
from edgefl.analysis.measures.scope import have_rounds, own_notes, reference_of, scope_of, variants_of
from edgefl.analysis.reports.settings_words import report, settings_figure
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.load import Paths, Runs, Setting, load_settings, together

# of `metrics.totals`
COSTS = (
    *("latency_s", "latency_mean_s", "round_energy_j", "round_energy_rx_j", "round_energy_tx_j"),
    *("round_energy_compute_j", "round_energy_tail_j", "energy_j", "simulated_s"),
)


def compare_settings(
    path: Paths,
    *,
    out: str | Path | None = None,
    reference: str | None = None,
    sessions: Sequence[int] | None = None,
    first_rounds: int = FIRST_ROUNDS,
    partial: bool = False,
) -> SettingsTable:
    """Compare the variants in every setting and write settings.csv, .md, .tex and .png.

    Runs without training are compared by latency and energy. A variant without a completed run in a setting leaves
    a gap there, and a note.

    Args:
        path: folder of a study with a grid, or those of its runs.
        out: where to write, by default that folder.
        reference: the variant whose lead is counted, by default the one that the runs name.
        sessions: these; None: those whose labels were seen before, without training all.
        first_rounds: training rounds of a session to average over (J, Table X: 10).
        partial: take runs too that are not completed.

    Raises:
        ValueError: no completed run, no grid, other axes or seeds in some settings, no such reference or session,
            no round, accuracies in some settings only, or a folder that cannot be written.
    """
    by_setting = load_settings(path, partial=partial)
    axes = tuple(axis for axis, _ in next(iter(by_setting)))
    if not axes:
        raise ValueError(f"the runs in {path} are of no grid: use `edgefl compare`")
    info, notes = together(by_setting)
    notes += own_notes(info)
    seeds = _seeds(by_setting, notes)
    reference = reference_of(info, reference, notes)
    variants = variants_of(info, reference)
    trained = any(runs.rounds["accuracy"].notna().any() for runs in by_setting.values())
    parts = []
    for setting, runs in by_setting.items():
        if tuple(axis for axis, _ in setting) != axes:
            raise ValueError(f"{runs.path} has other axes than the rest: give one study's folder")
        missing = [name for name in variants if name not in set(runs.info["variant"])]
        if missing:
            notes.append(f"no completed run of {', '.join(missing)} in {_named(setting)}")
        rounds = _rounds(runs, seeds, sessions)
        if trained:
            part = _accuracy(runs, rounds, seeds, variants, sessions, first_rounds)
        else:
            part = _costs(rounds, variants)
        for place, (axis, label) in enumerate(setting):
            part.insert(place, axis, label)
        parts.append(part)
    table = pd.concat(parts, ignore_index=True)
    if trained:
        _add_leads(table, variants, reference)
    else:
        notes.append("no run has an accuracy (runs without training): latency and energy only")
    shown = table["session"] if trained else _sessions(by_setting, sessions)
    settings = SettingsTable(
        score=next(iter(by_setting.values())).score,
        table=table,
        axes=axes,
        variants=tuple(variants),
        reference=reference,
        seeds=tuple(seeds),
        sessions=tuple(sorted({int(session) for session in shown})),
        first_rounds=first_rounds,
        trained=trained,
        figure=next(iter(by_setting.values())).folder(out) / "settings.png",
        notes=tuple(notes),
    )
    replace(report(settings), figures={"settings": settings_figure(settings)}).write()
    return settings


def _named(setting: Setting) -> str:
    return ", ".join(f"{axis} {label}" for axis, label in setting)


def _seeds(by_setting: dict[Setting, Runs], notes: list[str]) -> list[int]:
    """List the seeds that all variants of all settings have, as far as these have a run at all."""
    cells = [set(group["seed"]) for runs in by_setting.values() for _, group in runs.info.groupby("variant")]
    common = sorted(set.intersection(*cells))
    if not common:
        raise ValueError("no seed that all settings and variants have: run the missing ones")
    if any(cell != set(common) for cell in cells):
        notes.append(f"compared on the seeds that all settings have: {', '.join(map(str, common))}")
    return common


def _sessions(by_setting: dict[Setting, Runs], wanted: Sequence[int] | None) -> set[int]:
    return set(wanted or pd.concat([runs.rounds["session"] for runs in by_setting.values()]))


def _rounds(runs: Runs, seeds: list[int], wanted: Sequence[int] | None) -> pd.DataFrame:
    """Keep a setting's rounds of these seeds, and of these sessions."""
    for path in runs.info.loc[~have_rounds(runs.info, runs.rounds), "path"]:
        raise ValueError(f"{path} has no rounds: simulate at least one session in every setting")
    rounds = runs.rounds[runs.rounds["seed"].isin(seeds)]
    missing = set(wanted or ()) - set(rounds["session"])
    if missing:
        raise ValueError(f"{runs.path} has no session {', '.join(map(str, sorted(missing)))}")
    return rounds if wanted is None else rounds[rounds["session"].isin(wanted)]


def _accuracy(
    runs: Runs,
    rounds: pd.DataFrame,
    seeds: list[int],
    variants: list[str],
    wanted: Sequence[int] | None,
    first_rounds: int,
) -> pd.DataFrame:
    """Average the accuracy of a setting's first rounds, a row per session."""
    if not rounds["accuracy"].notna().any():
        raise ValueError(f"the runs in {runs.path} have no accuracy, those in other settings have")
    if wanted is None:
        detail = metrics.session_kinds(rounds, runs.sessions[runs.sessions["seed"].isin(seeds)])
        scope_of(detail, [])
        wanted = sorted(detail.loc[detail["in_scope"], "session"].unique())
    first = metrics.accuracy_first_rounds(rounds, first_rounds)
    accuracy = metrics.over_seeds(first, ["session", "variant"], "accuracy_first").unstack("variant")
    columns = {
        f"{variant}_{kind}": accuracy.get((kind, variant), float("nan"))
        for variant in variants
        for kind in ("mean", "std")
    }
    table = pd.DataFrame(columns, index=accuracy.index)
    return table.reindex([int(session) for session in wanted]).reset_index(names="session")


def _costs(rounds: pd.DataFrame, variants: list[str]) -> pd.DataFrame:
    """Average a setting's latency and energy, in one row."""
    by_seed = metrics.totals(rounds)
    row = {}
    for variant in variants:
        of_variant = by_seed[by_seed["variant"] == variant]
        for column in COSTS:
            row[f"{variant}_{column}_mean"] = of_variant[column].mean()
            row[f"{variant}_{column}_std"] = of_variant[column].std(ddof=1)
    return pd.DataFrame([row])


def _add_leads(table: pd.DataFrame, variants: list[str], reference: str | None) -> None:
    """Say which variant is best in each row, and by how much the reference leads where all have a run."""
    means = table[[f"{name}_mean" for name in variants]].set_axis(variants, axis=1)
    table["best"] = [row.idxmax() if row.notna().any() else "" for _, row in means.iterrows()]
    others = [name for name in variants if name != reference]
    table["lead"] = float("nan")
    if reference and others:
        lead = means[reference] - means[others].max(axis=1)
        table["lead"] = lead.where(means.notna().all(axis=1))
