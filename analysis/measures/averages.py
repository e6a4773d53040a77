"""Average quantities of variants over seeds: standard deviations, 95 % intervals, paired ratios and differences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from edgefl.analysis.measures import metrics
from edgefl.analysis.measures.metrics import RUN, SESSION, transitions
from edgefl.analysis.measures.results import DIFFER
from edgefl.analysis.measures.targets import Target
from edgefl.analysis.measures.uncertainty import Paired, Ratio, half_width, paired, paired_ratio
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.clock import Clock

FOUND = Paired._fields
ENDINGS = ("mean", "std", "ci")
# cost of a target -> the cost of the whole session, a lower bound if the session missed the target
COSTS = {
    "rounds_to_target": "session_rounds",
    "seconds_to_target": "session_s",
    "joules_to_target": "session_j",
}
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
TESTED = {  # quantity tested against the reference -> whether each session of a seed has its own value
    **dict.fromkeys(("accuracy_start", "accuracy_first", "seconds_to_target", "joules_to_target"), True),
    **dict.fromkeys(("energy_j", "simulated_s", "latency_s", "round_energy_j"), False),
}


def _spread(name: str, values: pd.Series) -> dict[str, float]:
    """Average one value per seed: NAME_mean, _std and _ci, half the 95 % interval of the mean.

    With one seed, or with infinite values, the spread is unknown (NaN).
    """
    mean = values.mean()
    finite = abs(mean) < float("inf")
    std = values.std(ddof=1) if finite else float("nan")
    return {f"{name}_mean": mean, f"{name}_std": std, f"{name}_ci": half_width(values.to_numpy(float))}


@dataclass(frozen=True)
class Costs:
    """Quantities of each variant at each point, seed by seed.

    Attributes:
        by_seed: one row per point, variant and seed.
        at: the columns that identify a point: a setting, a target, a session or a change.
    """

    by_seed: pd.DataFrame
    at: tuple[str, ...] = ()

    @classmethod
    def of(cls, spells: pd.DataFrame, quantities: Sequence[str], at: Sequence[str] = ()) -> "Costs":
        """Average quantities over the sessions and cells of each point, variant and seed."""
        return cls(spells.groupby([*at, *RUN])[list(quantities)].mean().reset_index(), tuple(at))

    def table(
        self, quantities: Iterable[str], variants: Sequence[str], endings: Sequence[str] = ENDINGS
    ) -> pd.DataFrame:
        """Average all quantities over seeds: one row per point and variant, with seeds, NAME_mean, _std and _ci."""
        names, rows = list(quantities), []
        points = self.by_seed.groupby(list(self.at), sort=False) if self.at else [((), self.by_seed)]
        for point, here in points:
            for variant in variants:
                if len(own := here[here["variant"] == variant]):
                    row = dict(zip(self.at, point, strict=True)) | {"variant": variant, "seeds": len(own)}
                    rows.append(row | {k: v for name in names for k, v in _spread(name, own[name]).items()})
        columns = [f"{name}_{ending}" for name in names for ending in endings]
        return pd.DataFrame(rows, columns=[*self.at, "variant", "seeds", *columns])

    def wide(
        self, quantities: Mapping[str, str], variants: Sequence[str], endings: Sequence[str] = ENDINGS
    ) -> pd.DataFrame:
        """Average quantities over seeds: one row per point, the index, with columns VARIANT_NAME_mean and so on.

        `quantities` maps a quantity to its NAME; with an empty NAME the columns are VARIANT_mean and so on.
        """
        table = self.table(quantities, variants).set_index(list(self.at))
        columns = {
            "_".join(filter(None, (variant, name, ending))): own[f"{quantity}_{ending}"]
            for variant in variants
            for own in [table[table["variant"] == variant]]
            for quantity, name in quantities.items()
            for ending in endings
        }
        return pd.DataFrame(columns, index=table.index.unique())

    def ratio(self, quantity: str, one: Mapping[str, Any], base: Mapping[str, Any]) -> Ratio:
        """Divide a quantity at `one` (point and variant: column -> value) by its value at `base`, paired by seed."""
        return paired_ratio(*self._pairs(quantity, one, base))

    def difference(self, quantity: str, one: Mapping[str, Any], base: Mapping[str, Any]) -> Paired:
        """Subtract a quantity at `base` from that at `one` (point and variant: column -> value), paired by seed."""
        return paired(*self._pairs(quantity, one, base))

    def _pairs(self, quantity: str, *both: Mapping[str, Any]) -> tuple[pd.Series, pd.Series]:
        found = []
        for keys in both:
            rows = self.by_seed
            for column, value in keys.items():
                # without `loc`, a table without rows would lose its columns
                rows = rows.loc[[own == value for own in rows[column]]]
            found.append(rows.set_index("seed")[quantity].astype(float))
        one, base = found
        return one.align(base, join="inner")


def with_metrics(
    detail: pd.DataFrame,
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    reference: str | None,
    targets: Sequence[Target],
    wanted: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Collect every per-session metric, with the session's kind; see `metrics.time_to_target` for `wanted`."""
    if targets:
        times = metrics.time_to_target(
            rounds, sessions, reference=reference, target=targets[0], wanted=wanted
        )
    else:  # without a target, keep lengths and probe rounds
        times = metrics.time_to_target(rounds, sessions, reference=None, target=1.0)
        unknown = ["target_accuracy", *(f"{unit}_to_target" for unit in metrics.KINDS)]
        times[unknown] = float("nan")
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


def bounded(spells: pd.DataFrame) -> pd.DataFrame:
    """Bound the costs of reaching the target from below: a session that missed the target counts in full.

    Returns:
        the sessions, with the additional columns NAME_at_least of each cost, `targets` (whether there is a target to
        reach) and `missed`.
    """
    missed = spells["rounds_to_target"].eq(float("inf"))
    least = {f"{cost}_at_least": spells[cost].mask(missed, spells[whole]) for cost, whole in COSTS.items()}
    return spells.assign(targets=spells["rounds_to_target"].notna(), missed=missed, **least)


def of_variants(detail: pd.DataFrame, totals: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    """Make a comparison's table, a row per variant."""
    scope = detail[detail["in_scope"]]
    adaptation = Costs.of(scope, PER_SESSION).table(PER_SESSION, variants).set_index("variant")
    reached = pd.DataFrame([_sped_up(scope[scope["variant"] == name]) for name in variants], index=variants)
    runs = Costs(totals).table(PER_RUN, variants).set_index("variant")
    parts = [runs[["seeds"]], adaptation.drop(columns="seeds"), reached, runs.drop(columns="seeds")]
    return pd.concat(parts, axis=1).reset_index(names="variant")


def reached(spells: pd.DataFrame) -> dict[str, object]:
    """Return lower bounds on a target's costs, averaged over seeds, and how many sessions missed the target."""
    timed = bounded(spells)
    names = [f"{cost}_at_least" for cost in COSTS]
    least: dict[str, object] = timed.groupby("seed")[names].mean().mean().to_dict()
    return least | {"not_reached": int(timed["missed"].sum()), "targets": int(timed["targets"].sum())}


def _sped_up(spells: pd.DataFrame) -> dict[str, object]:
    """Return a target's lower bounds and misses, the median of its rounds, and the reference's speed-up."""
    row = {"rounds_to_target_median": spells["rounds_to_target"].median(), **reached(spells)}
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
    """Measure the cost of reaching each target, in a row per target and variant.

    Args:
        scope: the sessions to average over, with the columns variant, seed, cell, session.

    Returns:
        target, variant, {rounds,seconds,joules}_to_target_mean, _std, _ci (inf if any session missed the target),
        {rounds,seconds,joules}_to_target_at_least, not_reached, targets, speed_up_rounds_median, ...
    """
    costs = [f"{unit}_to_target" for unit in metrics.KINDS]
    tables = []
    for target in targets:
        times = metrics.time_to_target(rounds, sessions, reference=reference, target=target)
        if reference is not None:
            times = times.merge(metrics.speed_up(times, reference=reference), on=SESSION, how="left")
        times = times.merge(scope[SESSION], on=SESSION).assign(target=target.key)
        table = Costs.of(times, costs, ["target"]).table(costs, variants).drop(columns="seeds")
        found = [_sped_up(times[times["variant"] == name]) for name in table["variant"]]
        tables.append(table.join(pd.DataFrame(found)))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()


def tests(
    detail: pd.DataFrame, totals: pd.DataFrame, variants: Sequence[str], reference: str | None
) -> pd.DataFrame:
    """Test each variant against the reference, paired by seed, in a row per quantity and variant.

    Returns:
        quantity, variant, and the fields of `uncertainty.Paired` of variant minus reference.
    """
    rows = []
    base = {"variant": reference}
    for quantity, per_session in TESTED.items():
        costs = Costs.of(detail[detail["in_scope"]], [quantity]) if per_session else Costs(totals)
        some = set(costs.by_seed.dropna(subset=[quantity])["variant"])
        for variant in variants if reference is not None and some else ():
            if variant != reference and variant in set(costs.by_seed["variant"]):
                test = costs.difference(quantity, {"variant": variant}, base)
                rows.append({"quantity": quantity, "variant": variant} | test._asdict())
    return pd.DataFrame(rows, columns=["quantity", "variant", *FOUND])


def of_sessions(
    detail: pd.DataFrame, variants: Sequence[str], again: str, clock: Clock | None, sessions: pd.DataFrame
) -> pd.DataFrame:
    """Make a table of sessions with labels, kind, and each variant's opening accuracy and transition.

    If the runs have a clock, there is a row per cell and session, in order of time, with start and number of devices
    from the first run that has the session. The kind of a recurring session is called `again`.
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
        rows.append(row)
    table = pd.DataFrame(rows)
    at = ["session"] if clock is None else ["session", "cell"]
    names = ("accuracy_start", "accuracy_first", "dip", "recovery_rounds")
    means = Costs.of(detail, names, at).wide(dict(zip(names, names, strict=True)), variants)
    table = table.join(means, on=at)
    return table if clock is None else table.sort_values(["start_s", "cell"], ignore_index=True)
