"""Compute the numbers of every setting of a grid: accuracies or costs, a column per variant."""

from collections.abc import Sequence

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.scope import roundless, scope_of
from edgefl.analysis.runs.load import Runs, Settings

# of `metrics.totals`
COSTS = (
    *("latency_s", "latency_mean_s", "round_energy_j", "round_energy_rx_j", "round_energy_tx_j"),
    *("round_energy_compute_j", "round_energy_tail_j", "energy_j", "simulated_s"),
)


def seeds_of(by_setting: Settings, notes: list[str]) -> list[int]:
    """List the seeds that all variants of all settings have, except those without any run."""
    cells = [set(group["seed"]) for runs in by_setting.values() for _, group in runs.info.groupby("variant")]
    common = sorted(set.intersection(*cells))
    if not common:
        raise ValueError("no seed is common to all settings and variants: run the missing ones")
    if any(cell != set(common) for cell in cells):
        notes.append(f"only the seeds that all settings have are compared: {', '.join(map(str, common))}")
    return common


def rounds_of(runs: Runs, seeds: list[int], wanted: Sequence[int] | None) -> pd.DataFrame:
    """Keep a setting's rounds of these seeds, and of these sessions."""
    for path in roundless(runs):
        raise ValueError(f"{path} has no rounds: simulate at least one session in every setting")
    rounds = runs.rounds[runs.rounds["seed"].isin(seeds)]
    missing = set(wanted or ()) - set(rounds["session"])
    if missing:
        raise ValueError(f"{runs.path} has no session {', '.join(map(str, sorted(missing)))}")
    return rounds if wanted is None else rounds[rounds["session"].isin(wanted)]


def accuracies(
    runs: Runs,
    rounds: pd.DataFrame,
    seeds: list[int],
    variants: list[str],
    wanted: Sequence[int] | None,
    first_rounds: int,
) -> pd.DataFrame:
    """Average the accuracy of a setting's first rounds, a row per session."""
    if not rounds["accuracy"].notna().any():
        raise ValueError(f"the runs in {runs.path} have no accuracy, but those in other settings do")
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


def costs(rounds: pd.DataFrame, variants: list[str]) -> pd.DataFrame:
    """Average a setting's latency and energy, in one row."""
    by_seed = metrics.totals(rounds)
    row: dict[str, float] = {}
    for variant in variants:
        for column, values in by_seed.loc[by_seed["variant"] == variant, list(COSTS)].items():
            row |= {f"{variant}_{column}_mean": values.mean(), f"{variant}_{column}_std": values.std()}
    return pd.DataFrame([row])


def add_leads(table: pd.DataFrame, variants: list[str], reference: str | None) -> None:
    """Add each row's best variant, and the reference's lead if all variants have a run."""
    means = table[[f"{name}_mean" for name in variants]].set_axis(variants, axis=1)
    table["best"] = [row.idxmax() if row.notna().any() else "" for _, row in means.iterrows()]
    others = [name for name in variants if name != reference]
    table["lead"] = float("nan")
    if reference and others:
        lead = means[reference] - means[others].max(axis=1)
        table["lead"] = lead.where(means.notna().all(axis=1))
