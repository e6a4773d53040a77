"""How a run comes through concept drift: F's metrics, and the seconds and joules until a model has recovered."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from edgefl.analysis.measures.drift_reading import PERSONAL, SAMPLES, WEIGHT, Reading
from edgefl.analysis.measures.metrics import RUN, training_rounds

AFTER = (1, 10, 40, 80)  # rounds after the drift is complete
TAIL = 20  # rounds whose mean is a level: before the drift, and at the end
PLAIN = Reading()


@dataclass(frozen=True)
class Change:
    """Drift in one direction: rounds (from 1) of its first and last step, and the last round of the new concept."""

    first: int
    last: int
    end: int


def numbered(rounds: pd.DataFrame) -> pd.DataFrame:
    """Keep training rounds, and number them over all sessions of a cell, from 1: the new column `number`."""
    training = training_rounds(rounds).sort_values([*RUN, "cell", "start_s"], kind="stable")
    return training.assign(number=training.groupby([*RUN, "cell"]).cumcount() + 1)


def participants(devices: pd.DataFrame, reading: Reading = PLAIN) -> pd.DataFrame:
    """Sum up each round's participants: personal accuracy (mean), epochs (sum); NaN where there are none.

    Returns:
        variant, seed, cell, session, round, accuracy_personal, epochs.
    """
    training = training_rounds(devices)
    keys = [*RUN, "cell", "session", "round"]
    rounds = training[keys].drop_duplicates(ignore_index=True)
    means = pd.DataFrame(index=pd.MultiIndex.from_frame(rounds))
    if PERSONAL in training:
        known = training[training[PERSONAL].notna()]
        weight = known[WEIGHT] if reading.by == "samples" else pd.Series(1.0, known.index)
        weighed = known[keys].assign(sum=known[PERSONAL] * weight, weight=weight)
        sums = weighed.groupby(keys)[["sum", "weight"]].sum()
        means[PERSONAL] = sums["sum"] / sums["weight"]
    if "epochs" in training:
        means["epochs"] = training.groupby(keys)["epochs"].sum()
    return means.reindex(columns=[PERSONAL, "epochs"]).reset_index()


def changes_of(drifted: np.ndarray) -> list[Change]:
    """Find where the share of drifted devices [rounds] goes up or down, steps in one direction taken together."""
    steps = np.flatnonzero(np.diff(drifted, prepend=0.0)) + 1
    directions = np.sign(np.diff(drifted, prepend=0.0))[steps - 1]
    groups: list[list[int]] = []
    for i, step in enumerate(steps.tolist()):
        if i and directions[i] == directions[i - 1]:
            groups[-1].append(step)
        else:
            groups.append([step])
    ends = [group[0] - 1 for group in groups[1:]] + [len(drifted)] * bool(groups)
    return [Change(group[0], group[-1], end) for group, end in zip(groups, ends, strict=True)]


def drift_figures(
    rounds: pd.DataFrame, of_participants: pd.DataFrame, reading: Reading = PLAIN
) -> pd.DataFrame:
    """Measure each change of concept of each run.

    Accuracy is the column `accuracy`: tested on each device present and averaged, F's generalized accuracy; or, by
    samples, `accuracy_by_samples`. Levels are means over 20 rounds. Dip and recovery are the reading's. (F counts
    rounds until "a steady state" and gives no rule; who has lost nothing, such as its Oracle, needs 0 rounds there
    and here.)

    Args:
        rounds: of `numbered`.
        of_participants: of `participants`, with the same reading.
        reading: how accuracies are read.

    Returns:
        variant, seed, cell, change (1, 2, ...), first_round, last_round; accuracies before, dip, after_1, _10,
        _40, _80 (that many rounds after the last step), final; recovery_rounds, recovery_s, recovery_j (inf:
        never); deviation_before, deviation_final (over the devices); personal_before, personal_dip,
        personal_final (of participants, after local training; where a run has not recorded the devices of all rounds,
        the mean that rounds.csv has); epochs_before, epochs_after (of all participants,
        per round, in the rounds before the drift and the first ones after it).
    """
    columns = [
        "accuracy",
        "accuracy_std",
        PERSONAL,
        "epochs",
        "energy_j",
        "start_s",
        "end_s",
        "drifted",
    ]
    samples = "_by_samples" if reading.by == "samples" else ""
    # a run that leaves devices out still has the mean of personal models
    rounds = rounds.rename(columns={PERSONAL + samples: "summed_up"}).drop(columns=PERSONAL, errors="ignore")
    if samples:
        rounds = rounds.assign(accuracy=rounds[SAMPLES])
    keys = [*RUN, "cell", "session", "round"]
    merged = rounds.merge(of_participants, on=keys, how="left", indicator="recorded")
    rows: list[dict[str, Any]] = []
    for key, run in merged.groupby([*RUN, "cell"]):
        run = run.sort_values("number")
        if "summed_up" in run and not (run["recorded"] == "both").all():
            run = run.assign(**{PERSONAL: run["summed_up"]})
        # untested rounds say nothing about the share of drifted devices: that of the last tested one holds
        series = {
            name: run[name].to_numpy(float) if name in run else np.full(len(run), np.nan) for name in columns
        }
        series["drifted"] = run["drifted"].bfill().ffill().fillna(0.0).to_numpy(float)
        for number, change in enumerate(changes_of(series["drifted"]), start=1):
            rows.append(
                dict(zip([*RUN, "cell"], key, strict=True))
                | {"change": number, "first_round": change.first, "last_round": change.last}
                | _measure(series, change, reading)
            )
    return pd.DataFrame(rows)


def _measure(series: dict[str, np.ndarray], change: Change, reading: Reading) -> dict[str, float]:
    before = slice(max(0, change.first - 1 - TAIL), change.first - 1)
    during = slice(change.first - 1, change.end)
    after = slice(change.last - 1, change.end)
    tail = slice(max(change.last - 1, change.end - TAIL), change.end)
    accuracy, personal = series["accuracy"], series[PERSONAL]
    level, final = _mean(accuracy[before]), _mean(accuracy[tail])
    rounds = reading.recovery_rounds(accuracy[after], level, final)
    reached = math.isfinite(rounds)
    back = change.last - 1 + int(rounds) if reached else 0
    return {
        "before": level,
        "dip": reading.dip(accuracy[during]),
        **{f"after_{k}": _at(accuracy[after], k) for k in AFTER},
        "final": final,
        "recovery_rounds": rounds,
        "recovery_s": series["start_s"][back] - series["start_s"][change.last - 1] if reached else rounds,
        "recovery_j": float(series["energy_j"][change.last - 1 : back].sum()) if reached else rounds,
        "deviation_before": _mean(series["accuracy_std"][before]),
        "deviation_final": _mean(series["accuracy_std"][tail]),
        "personal_before": _mean(personal[before]),
        "personal_dip": reading.dip(personal[during]),
        "personal_final": _mean(personal[tail]),
        "epochs_before": _mean(series["epochs"][before]),
        "epochs_after": _mean(series["epochs"][after][:TAIL]),
    }


def _at(accuracy: np.ndarray, number: int) -> float:
    """Return the accuracy `number` rounds after the drift, or in the next tested round; NaN: no round was tested."""
    later = accuracy[number - 1 :]
    later = later[np.isfinite(later)]
    return float(later[0]) if len(later) else math.nan


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
