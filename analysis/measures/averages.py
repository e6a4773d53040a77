"""A comparison's numbers over seeds: means, deviations, 95 % intervals, and paired tests against the reference."""

from collections.abc import Sequence

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.metrics import RUN, SESSION, transitions
from edgefl.analysis.measures.results import DIFFER
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import Paired, half_width, paired
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.clock import Clock

FOUND = Paired._fields
PER_SESSION = [
    *("accuracy_start", "accuracy_round_1", "accuracy_first"),
    *("rounds_to_target", "seconds_to_target", "joules_to_target", "probe_rounds", "gain"),
    *("accuracy_before", "accuracy_dip", "dip", "recovery_rounds", "recovery_s", "recovery_j"),
]
PER_RUN = [
    *("energy_j", "simulated_s", "latency_s", "latency_mean_s"),
    *("round_energy_j", "round_energy_rx_j", "round_energy_tx_j"),
    *("round_energy_compute_j", "round_energy_tail_j"),
]
TESTED = {  # quantity tested against the reference -> whether a seed has one number of it per session
    **dict.fromkeys(("accuracy_start", "accuracy_first", "seconds_to_target", "joules_to_target"), True),
    **dict.fromkeys(("energy_j", "simulated_s", "latency_s", "round_energy_j"), False),
}


def spread(name: str, values: pd.Series) -> dict[str, float]:
    """Average over seeds: name_mean, _std and _ci, half the 95 % interval of the mean.

    The spread of one seed, or of something infinite, is unknown (NaN).
    """
    mean = values.mean()
    finite = abs(mean) < float("inf")
    std = values.std(ddof=1) if finite else float("nan")
    return {f"{name}_mean": mean, f"{name}_std": std, f"{name}_ci": half_width(values.to_numpy(float))}


def with_metrics(
    detail: pd.DataFrame,
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    reference: str | None,
    targets: Sequence[Target],
) -> pd.DataFrame:
    """Collect every per-session metric, with the session's kind."""
    if targets:
        times = metrics.time_to_target(rounds, sessions, reference=reference, target=targets[0])
    else:  # lengths of sessions, and their numbers of probes
        times = metrics.time_to_target(rounds, sessions, reference=None, target=1.0)
        wanted = ["target_accuracy", *(f"{unit}_to_target" for unit in metrics.KINDS)]
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


def of_variants(detail: pd.DataFrame, totals: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    """Make a comparison's table: a row per variant."""
    scope = detail[detail["in_scope"]]
    rows = []
    for variant in variants:
        spells, run = scope[scope["variant"] == variant], totals[totals["variant"] == variant]
        by_seed = spells.groupby(RUN)[PER_SESSION].mean()
        row: dict[str, object] = {"variant": variant, "seeds": len(run)}
        for column in PER_SESSION:
            row |= spread(column, by_seed[column])
        row |= _reached(spells)
        for column in PER_RUN:
            row |= spread(column, run[column])
        rows.append(row)
    return pd.DataFrame(rows)


def _reached(spells: pd.DataFrame) -> dict[str, object]:
    """Return how often a target was missed, a lower bound of its cost, and the reference's speed-up."""
    timed = spells[spells["rounds_to_target"].notna()]
    missed = timed["rounds_to_target"] == float("inf")
    row: dict[str, object] = {"rounds_to_target_median": timed["rounds_to_target"].median()}
    for unit, length in (("seconds", "session_s"), ("joules", "session_j")):
        spent = timed[f"{unit}_to_target"].mask(missed, timed[length])
        row[f"{unit}_to_target_at_least"] = spent.groupby(timed["seed"]).mean().mean()
    row |= {"not_reached": int(missed.sum()), "targets": len(timed)}
    for unit in metrics.KINDS:  # without a reference there is no speed-up
        row[f"speed_up_{unit}_median"] = spells.get(f"speed_up_{unit}", pd.Series(dtype=float)).median()
    return row


def to_targets(
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    scope: pd.DataFrame,
    variants: Sequence[str],
    targets: Sequence[Target],
    reference: str | None,
) -> pd.DataFrame:
    """Measure what each target costs: a row per target and variant.

    Args:
        scope: the sessions to average over, by variant, seed, cell, session.

    Returns:
        target, variant, {rounds,seconds,joules}_to_target_mean, _std, _ci (inf as soon as one session missed it),
        seconds_to_target_at_least, joules_to_target_at_least, not_reached, targets, speed_up_rounds_median, ...
    """
    rows = []
    for target in targets:
        times = metrics.time_to_target(rounds, sessions, reference=reference, target=target)
        if reference is not None:
            times = times.merge(metrics.speed_up(times, reference=reference), on=SESSION, how="left")
        times = times.merge(scope[SESSION], on=SESSION)
        for variant in variants:
            spells = times[times["variant"] == variant]
            by_seed = spells.groupby("seed")[[f"{unit}_to_target" for unit in metrics.KINDS]].mean()
            row: dict[str, object] = {"target": target.key, "variant": variant}
            for column in by_seed:
                row |= spread(str(column), by_seed[column])
            rows.append(row | _reached(spells))
    return pd.DataFrame(rows)


def tests(
    detail: pd.DataFrame, totals: pd.DataFrame, variants: Sequence[str], reference: str | None
) -> pd.DataFrame:
    """Test each variant against the reference, paired by seed: a row per quantity and variant.

    Returns:
        quantity, variant, and the fields of `uncertainty.Paired` of variant minus reference.
    """
    if reference is None:
        return pd.DataFrame(columns=["quantity", "variant", *FOUND])
    scope = detail[detail["in_scope"]]
    rows = []
    for quantity, per_session in TESTED.items():
        source = scope.groupby(RUN)[quantity].mean().reset_index() if per_session else totals
        by_seed = source.pivot(index="seed", columns="variant", values=quantity)
        if not by_seed.notna().to_numpy().any():
            continue
        for variant in variants:
            if variant != reference and variant in by_seed:
                test = paired(by_seed[variant].to_numpy(float), by_seed[reference].to_numpy(float))
                rows.append({"quantity": quantity, "variant": variant} | test._asdict())
    return pd.DataFrame(rows, columns=["quantity", "variant", *FOUND])


def of_sessions(
    detail: pd.DataFrame, variants: Sequence[str], again: str, clock: Clock | None, sessions: pd.DataFrame
) -> pd.DataFrame:
    """Make the table of sessions: labels, kind, and each variant's opening accuracy and transition.

    With a clock there is a row per cell and session, in order of time; its begin and number of devices are those of
    the first variant and seed that has the session.

    Args:
        again: name for the kind of a recurring session.
        sessions: as `Runs` has them.
    """
    rows = []
    begun = sessions.drop_duplicates(["cell", "session"]).set_index(["cell", "session"])
    for (session, *cell), group in detail.groupby(["session"] if clock is None else ["session", "cell"]):
        texts = group["labels"].unique()
        row: dict[str, object] = {"session": session}
        if clock is not None:
            about = begun.loc[(cell[0], session)]
            start_s = float(about["start_s"])
            row |= {"cell": int(cell[0]), "start_s": start_s, "begins": clock.words(start_s)}
            row["devices"] = len(str(about["devices"]).split())
        row |= {
            "labels": texts[0] if len(texts) == 1 else DIFFER,
            "kind": "pilot" if group["pilot"].any() else again if group["recurring"].any() else "new",
        }
        for variant in variants:
            spells = group[group["variant"] == variant]
            for name in ("accuracy_start", "accuracy_first", "dip", "recovery_rounds"):
                row |= spread(f"{variant}_{name}", spells.groupby("seed")[name].mean())
        rows.append(row)
    table = pd.DataFrame(rows)
    return table if clock is None else table.sort_values(["start_s", "cell"], ignore_index=True)
