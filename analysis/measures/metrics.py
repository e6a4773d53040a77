"""The papers' metrics of adaptation, as pure functions of the tidy tables of `load_runs`.

J is the journal paper whose equations are numbered here. Accuracies are 0..1, times are simulated seconds, and
energies are joules of all devices together. Rows are keyed by variant, seed, cell and session: each cell with a
server has its own sessions. A training round is any round except a probe round; rounds count from 1 within a
session.

NaN means that there is nothing to measure (no training, no reference); inf means that a level was not reached.
"""

import math
from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.measures.targets import BEST, Target, target_of
from edgefl.analysis.runs.reading import RUN as RUN
from edgefl.analysis.runs.reading import SESSION as SESSION
from edgefl.analysis.runs.under_way import UNDER_WAY

# accuracy on training samples that no device holds, with learning.evaluation.validation
VALIDATION = "accuracy_validation"
SPELL = ["seed", "cell", "session"]  # identifies a session in all variants of a study
KINDS = ("rounds", "seconds", "joules")  # costs of reaching a target
# rounding error of an accuracy, a share of test samples: smaller differences are ties, and a tie reaches a target
TIE = 1e-9


def of_run(table: pd.DataFrame, run: Any) -> pd.DataFrame:
    """Keep a table's rows of one run, which is given as a row of `Runs.info`."""
    return table[(table["variant"] == run.variant) & (table["seed"] == run.seed)]


def training_rounds(rounds: pd.DataFrame) -> pd.DataFrame:
    """Keep the rounds that train the session's model, those of the phases pilot and train."""
    return rounds[rounds["phase"] != "probe"]


def over_seeds(frame: pd.DataFrame, by: list[str], column: str) -> pd.DataFrame:
    """Average a column over seeds, with its sample standard deviation (NaN with one seed).

    Cells are averaged within a seed first.

    Returns:
        a frame with the columns mean and std, indexed by `by`.
    """
    by_seed = frame.groupby([*by, "seed"])[column].mean()
    return by_seed.groupby(by).agg(["mean", "std"])


def session_kinds(rounds: pd.DataFrame, sessions: pd.DataFrame) -> pd.DataFrame:
    """Determine which sessions are pilots and which recur.

    A session recurs if its set of labels was seen in an earlier session that was not a pilot. A session is a pilot if
    it is a pilot in any variant of its seed, so that a variant without pilots is measured on the same sessions.

    Returns:
        variant, seed, cell, session, labels (as written), pilot, recurring, measured (whether the session has a
        tested training round; in a run that tests no model, a training round).
    """
    kinds = sessions[[*SESSION, "labels"]].sort_values(SESSION, ignore_index=True)
    training = training_rounds(rounds)
    tests = training["accuracy"].notna()
    of_run = tests.groupby([training[column] for column in RUN]).transform("any")
    measured = set(training.loc[tests | ~of_run, SESSION].itertuples(index=False, name=None))
    kinds["measured"] = [key in measured for key in kinds[SESSION].itertuples(index=False, name=None)]
    piloted = rounds.loc[rounds["phase"] == "pilot", SPELL].itertuples(index=False, name=None)
    pilots = set(piloted)
    kinds["pilot"] = [(row.seed, row.cell, row.session) in pilots for row in kinds.itertuples()]
    seen: dict[tuple[object, ...], set[frozenset[str]]] = {}
    recurring = []
    for row in kinds.itertuples():
        earlier = seen.setdefault((row.variant, row.seed, row.cell), set())
        labels = frozenset(str(row.labels).split())
        recurring.append(labels in earlier)
        if labels and not row.pilot:
            earlier.add(labels)
    kinds["recurring"] = pd.Series(recurring, kinds.index, dtype=bool)
    return kinds


def unpaired(table: pd.DataFrame, column: str) -> str:
    """List a seed's sessions in which a column's set of words differs between variants."""
    sets = table[column].map(lambda words: frozenset(str(words).split()))
    count = sets.groupby([table[name] for name in SPELL]).nunique()
    return ", ".join(map(str, sorted({int(session) for *_, session in count.index[count > 1]})))


def accuracy_after_change(rounds: pd.DataFrame, sessions: pd.DataFrame) -> pd.DataFrame:
    """Find the accuracy right after each change of session, on the new session's test labels.

    Returns:
        variant, seed, cell, session, accuracy_start (the opening model, before any training), accuracy_round_1 (after
        the first training round).
    """
    training = training_rounds(rounds)
    first = training.loc[training["round"] == 1, [*SESSION, "accuracy"]]
    first = first.rename(columns={"accuracy": "accuracy_round_1"})
    return sessions[[*SESSION, "accuracy_start"]].merge(first, on=SESSION, how="left")


def accuracy_first_rounds(rounds: pd.DataFrame, first_rounds: int = 10) -> pd.DataFrame:
    """Average the accuracy over a session's first training rounds, as far as all variants have tested these rounds.

    Early rounds are the poorest, so a variant that ends a session sooner would otherwise seem worse, and a variant
    that tests fewer rounds better.

    Returns:
        variant, seed, cell, session, accuracy_first. Source: J, Tables II, III and X to XII (10 rounds).
    """
    return _first(rounds, first_rounds).groupby(SESSION)["accuracy"].mean().reset_index(name="accuracy_first")


def fewest_first_rounds(rounds: pd.DataFrame, first_rounds: int) -> pd.Series:
    """Return for each session over how few rounds `accuracy_first_rounds` averages in some seed and cell."""
    return _first(rounds, first_rounds).groupby(SPELL)["round"].nunique().groupby("session").min()


def _first(rounds: pd.DataFrame, first_rounds: int) -> pd.DataFrame:
    if first_rounds < 1:
        raise ValueError(f"first_rounds is {first_rounds}: must be at least 1")
    training = training_rounds(rounds)
    return training[(training["round"] <= first_rounds) & tested_by_all(training)]


def tested_by_all(training: pd.DataFrame) -> pd.Series:
    """Mark the training rounds that have an accuracy in all variants that have any accuracy in the session."""
    spell = [training[column] for column in SPELL]
    tested = training["variant"].where(training["accuracy"].notna())
    variants = tested.groupby(spell).transform("nunique")
    return tested.notna() & tested.groupby([*spell, training["round"]]).transform("nunique").eq(variants)


def rounds_of_all(training: pd.DataFrame) -> pd.Series:
    """Return for each training round how many rounds all variants have in its session; by the index of `training`."""
    longest = training.groupby(SESSION)["round"].transform("max")
    return longest.groupby([training[column] for column in SPELL]).transform("min")


def _judged(training: pd.DataFrame) -> pd.DataFrame:
    """Return the rounds, with the validation accuracy as `accuracy` if all tested rounds have one."""
    if VALIDATION not in training or (training[VALIDATION].isna() & training["accuracy"].notna()).any():
        return training
    return training.assign(accuracy=training[VALIDATION])


def with_spending(rounds: pd.DataFrame) -> pd.DataFrame:
    """Return the rounds in order of time, with column `spent_j`: joules of a session that ends with the round.

    These are the joules of the rounds so far, of work under way (`runs.under_way`), and of the tails that are then
    running, in full: if the run goes on, later transfers cut these tails short (`energy_cut_j`).
    """
    spells = rounds.sort_values([*SESSION, "start_s"], ignore_index=True)
    return spells.assign(spent_j=spells.groupby(SESSION)["energy_j"].cumsum() + _at_an_end(spells))


def spent_in_run(run: pd.DataFrame) -> np.ndarray:
    """Return [rounds] the joules of a run that ends with each of its rounds, given in order of their ends.

    The joules are those of `with_spending`, summed over sessions and cells. A shorter run may spend more, as its
    tails are whole; the joules are then those of the cheapest run that is no shorter, so that they never decrease.
    """
    by_cell = _at_an_end(run).groupby(run["cell"])
    of_cells = pd.DataFrame(dict(iter(by_cell))).reindex(run.index).ffill()
    spent_j = run["energy_j"].cumsum() + of_cells.sum(axis=1)
    return np.minimum.accumulate(spent_j.to_numpy()[::-1])[::-1]


def _at_an_end(rounds: pd.DataFrame) -> pd.Series:
    """Return the joules that a run has spent in addition to those of its rounds if it ends with each round."""
    return rounds[rounds.columns.intersection(["energy_cut_j", UNDER_WAY])].fillna(0.0).sum(axis=1)


def target_accuracy(
    rounds: pd.DataFrame, *, reference: str | None, target: str | float | Target = "95%"
) -> pd.DataFrame:
    """Return the accuracy to reach in each session.

    Args:
        reference: the variant to whose best accuracy a relative target refers, unless the target names another
            variant; by default the variant with the best accuracy.
        target: the target accuracy, in any form that `targets.target_of` accepts.

    Returns:
        a table with columns seed, cell, session, target_accuracy. Source: J (31), rho = target.
    """
    goal = target_of(target)
    training = _judged(training_rounds(rounds))
    if not goal.relative:
        return training[SPELL].drop_duplicates().assign(target_accuracy=goal.value)
    peak = goal.peak or reference
    best_of_all = peak is None or (goal.peak == BEST and BEST not in set(training["variant"]))
    if not best_of_all:
        training = training[training["variant"] == peak]
    best = training.groupby(SPELL)["accuracy"].max()
    return (goal.value * best).rename("target_accuracy").reset_index()


def time_to_target(
    rounds: pd.DataFrame,
    sessions: pd.DataFrame,
    *,
    reference: str | None,
    target: str | float | Target = "95%",
    wanted: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Measure T_rho, the cost in each session of reaching `target_accuracy` of the same seed and session.

    rounds_to_target counts training rounds, as J does. Seconds and joules are counted from the start of the
    session, including the probe rounds before the first training round; probe_rounds is their number. A table
    `wanted` in the form of `target_accuracy` replaces it, if other rounds also define the target.

    Returns:
        variant, seed, cell, session, target_accuracy, rounds_to_target, seconds_to_target, joules_to_target (inf: not
        reached; NaN: no accuracy to compare with), probe_rounds, and session_rounds, session_s and session_j, of the
        whole session (lower bounds of the costs if the target was not reached). There is one row per session with a
        training round.

    Source: J (31) and Table VII. Joules and seconds are simulated here; J assumes constants per round.
    """
    spells = with_spending(rounds)
    if wanted is None:
        wanted = target_accuracy(rounds, reference=reference, target=target)
    training = _judged(training_rounds(spells)).merge(wanted, on=SPELL, how="left")
    times = training.groupby(SESSION).agg(
        target_accuracy=("target_accuracy", "first"),
        tested=("accuracy", "count"),
        session_rounds=("round", "size"),
    )
    whole = spells.groupby(SESSION).agg(
        session_s=("end_s", "max"), session_j=("spent_j", "last"), all_rounds=("round", "size")
    )
    starts = sessions.drop_duplicates(SESSION).set_index(SESSION)["start_s"]
    times = times.join(whole).join(starts)
    times["session_s"] -= times["start_s"]
    times["probe_rounds"] = times["all_rounds"] - times["session_rounds"]
    reached = training[training["accuracy"] >= training["target_accuracy"] - TIE].drop_duplicates(SESSION)
    first = reached.set_index(SESSION)[["round", "end_s", "spent_j"]].reindex(times.index)
    nothing = times["target_accuracy"].isna() | (times["tested"] == 0)
    missing = pd.Series(math.inf, times.index).mask(nothing, math.nan)
    times["rounds_to_target"] = first["round"].astype(float).fillna(missing)
    times["seconds_to_target"] = (first["end_s"] - times["start_s"]).fillna(missing)
    times["joules_to_target"] = first["spent_j"].fillna(missing)
    columns = ["target_accuracy", "rounds_to_target", "seconds_to_target", "joules_to_target"]
    return times[[*columns, "probe_rounds", "session_rounds", "session_s", "session_j"]].reset_index()


def speed_up(times: pd.DataFrame, *, reference: str) -> pd.DataFrame:
    """Compute the reference's speed-up over each variant from the costs that `time_to_target` returns.

    Returns:
        variant, seed, cell, session, speed_up_rounds, speed_up_seconds, speed_up_joules: the variant's T_rho divided
        by T_rho of the reference (1 for the reference, inf if the variant missed the target). Source: J, Table VII.
    """
    wanted = [f"{kind}_to_target" for kind in KINDS]
    of_reference = times.loc[times["variant"] == reference, [*SPELL, *wanted]]
    paired = times[[*SESSION, *wanted]].merge(of_reference, on=SPELL, how="left", suffixes=("", "_reference"))
    result = paired[SESSION].copy()
    for kind, column in zip(KINDS, wanted, strict=True):
        base = paired[f"{column}_reference"]
        result[f"speed_up_{kind}"] = paired[column] / base.where(np.isfinite(base))
    return result


def accumulated_gain(rounds: pd.DataFrame, *, reference: str) -> pd.DataFrame:
    """Compute G_total, the reference's accuracy minus the variant's, summed over a session's training rounds.

    Rounds that only one of the two variants has are left out.

    Returns:
        variant, seed, cell, session, gain (in accuracy x rounds; J's tables print 100 times the gain). Positive: the
        reference is better; 0 for the reference itself. Source: J (32).
    """
    training = training_rounds(rounds)[[*SESSION, "round", "accuracy"]]
    of_reference = training[training["variant"] == reference].drop(columns="variant")
    paired = training.merge(of_reference, on=[*SPELL, "round"], suffixes=("", "_reference"))
    paired["gain"] = paired["accuracy_reference"] - paired["accuracy"]
    # with min_count, a session without any accuracy has no gain, instead of a gain of zero
    return paired.groupby(SESSION)["gain"].sum(min_count=1).reset_index()


def totals(rounds: pd.DataFrame) -> pd.DataFrame:
    """Add up the cost of a whole run, probe rounds included, and average the cost of its training rounds.

    Returns:
        variant, seed, energy_j, simulated_s (end of the last round), rounds and probe_rounds; means over the
        training rounds: latency_s (the slowest device, which a synchronous round waits for), latency_mean_s
        (mean over the devices, J's Table VII), round_energy_j and its parts round_energy_rx_j, _tx_j, _compute_j and
        _tail_j.
    """
    runs = rounds.groupby(RUN)
    training = training_rounds(rounds)
    probes = rounds["phase"].eq("probe").groupby([rounds[column] for column in RUN]).sum()
    energies = ["energy_j", "energy_rx_j", "energy_tx_j", "energy_compute_j", "energy_tail_j"]
    per_round = training.groupby(RUN)[["latency_s", "latency_mean_s", *energies]].mean()
    return pd.concat(
        [
            runs["energy_j"].sum(),
            runs["end_s"].max().rename("simulated_s"),
            training.groupby(RUN).size().rename("rounds"),
            probes.rename("probe_rounds"),
            per_round.rename(columns={column: f"round_{column}" for column in energies}),
        ],
        axis=1,
    ).reset_index()


MARGIN = 0.01  # accuracy by which a model may miss the previous level and still count as recovered
OF_RUN = [*RUN, "cell"]


def transitions(rounds: pd.DataFrame, sessions: pd.DataFrame) -> pd.DataFrame:
    """Measure dip and recovery of accuracy at each change of session.

    The level before a change is the last accuracy of the previous session, tested on that session's labels: if the
    labels change, the two tests differ in difficulty, so compare variants, not sessions.

    Returns:
        variant, seed, cell, session, accuracy_before (NaN in a cell's first session), accuracy_dip (the lowest
        accuracy, including that of the opening model), dip (before minus lowest), and recovery_rounds, recovery_s,
        recovery_j: training rounds, simulated seconds and joules of all devices from the session's start (probe
        rounds included) to the first model that is at most `MARGIN` below the level before; 0 if this already holds
        for the opening model, inf if it holds for no model of this session.

    Source: F, equation 4 (dip, rounds till recovery), for sessions instead of drifts.
    """
    training = training_rounds(with_spending(rounds))
    tested = training[training["accuracy"].notna()]
    last = tested.groupby(SESSION)["accuracy"].last().rename("last")
    lowest = tested.groupby(SESSION)["accuracy"].min().rename("lowest")
    changes = sessions.drop_duplicates(SESSION).sort_values(SESSION)[[*SESSION, "start_s", "accuracy_start"]]
    changes = changes.merge(last, on=SESSION, how="left").merge(lowest, on=SESSION, how="left")
    changes["accuracy_before"] = changes.groupby(OF_RUN)["last"].shift()
    changes["accuracy_dip"] = changes[["accuracy_start", "lowest"]].min(axis=1)
    changes["dip"] = changes["accuracy_before"] - changes["accuracy_dip"]
    changes["level"] = changes["accuracy_before"] - MARGIN - TIE
    back = tested.merge(changes[[*SESSION, "level", "start_s"]], on=SESSION, suffixes=("", "_session"))
    back = back[back["accuracy"] >= back["level"]].drop_duplicates(SESSION)
    back["recovery_rounds"] = back["round"].astype(float)
    back["recovery_s"] = back["end_s"] - back["start_s_session"]
    back["recovery_j"] = back["spent_j"]
    recoveries = ["recovery_rounds", "recovery_s", "recovery_j"]
    changes = changes.merge(back[[*SESSION, *recoveries]], on=SESSION, how="left")
    known = changes["level"].notna() & changes["accuracy_dip"].notna()
    opens = changes["accuracy_start"] >= changes["level"]
    for name in recoveries:
        changes[name] = changes[name].fillna(float("inf")).where(~opens, 0.0).where(known)
    return changes[[*SESSION, "accuracy_before", "accuracy_dip", "dip", *recoveries]]
