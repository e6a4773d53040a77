"""Measure a run under concept drift by paper F's metrics, and the seconds and joules until a model has recovered."""

import math
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd

from edgefl.analysis.measures.metrics import RUN, training_rounds
from edgefl.analysis.runs.choices import MARGIN, SMOOTH, Recovery, Weights

SAMPLES = "accuracy_by_samples"  # column of rounds, if devices are tested on their own data
WEIGHT = "test_samples"  # column with a participant's number of test samples
MEASURED = ("accuracy", "accuracy_std", "accuracy_personal", "epochs", "energy_j", "start_s", "end_s")
PERSONAL = "accuracy_personal"  # of a participant's own model; in rounds, the mean over these models


@dataclass(frozen=True)
class Reading:
    """How dip and recovery are measured from accuracies; paper F defines only the interval.

    Attributes:
        by: how accuracies are averaged: each device counts equally, or each test sample does.
        window: number of rounds to average over in the search for the dip; 1 uses each round's own accuracy.
        first, last: the interval of the dip (F, equation 4), which contains the windows; the drift's first round is
            round 1. If last is None, the interval ends when the concept changes again.
        recovery: level: over `smooth` rounds the mean is at least the lower of the levels before and at the end,
            minus `margin`; the level at the end counts if the concept lasts for SETTLED rounds, and half of what was
            lost is regained. plateau: `smooth` rounds, with half of what was lost regained, are followed by `smooth`
            rounds that gain no more than `margin`.
        smooth, margin: parameters of the recovery rule: a number of rounds, and a difference of accuracies 0..1.
    """

    by: Weights = "devices"
    window: int = 1
    first: int = 1
    last: int | None = None
    recovery: Recovery = "level"
    smooth: int = SMOOTH
    margin: float = MARGIN

    def __post_init__(self) -> None:
        for name, value, known in (
            ("by", self.by, get_args(Weights)),
            ("recovery", self.recovery, get_args(Recovery)),
        ):
            if value not in known:
                raise ValueError(f"{name} is {value!r}: choose {' or '.join(known)}")
        for name, number in (("smooth", self.smooth), ("window", self.window), ("from", self.first)):
            if number < 1:
                raise ValueError(f"{name} is {number}: must be a number of rounds, at least 1")
        if not 0 <= self.margin < 1:
            raise ValueError(f"margin is {self.margin}: must be a share of accuracy, from 0 to below 1")
        if self.last is not None and self.last - self.first + 1 < self.window:
            raise ValueError(
                f"rounds {self.first} to {self.last} are fewer than the {self.window} rounds of the window: "
                "widen the interval or shorten the window"
            )

    def dip(self, accuracy: np.ndarray) -> float:
        """Return the lowest mean accuracy of any window of rounds, starting at the drift; NaN if no round is tested.

        If the concept ends within the first window, return the mean of the concept's rounds. Untested rounds are NaN.
        """
        inside = pd.Series(accuracy[self.first - 1 : self.last])
        means = inside.rolling(self.window, min_periods=1).mean().to_numpy()
        whole = means[min(self.window, len(means)) - 1 :] if len(means) else means
        known = whole[np.isfinite(whole)]
        return float(known.min()) if len(known) else math.nan

    def recovery_rounds(self, accuracy: np.ndarray, before: float, final: float, dip: float) -> float:
        """Count the rounds from the drift until the model has recovered; inf if it does not in these rounds."""
        tested = np.flatnonzero(np.isfinite(accuracy))
        half = (before + dip) / 2 - self.margin  # a model that stays in its dip has not recovered
        settled = len(accuracy) >= SETTLED and not final < half
        level = np.fmin(before, final if settled else math.nan) - self.margin
        if not len(tested) or (self.recovery == "level" and math.isnan(level)):
            return math.nan
        smooth = min(self.smooth, len(tested))
        means = np.convolve(accuracy[tested], np.full(smooth, 1 / smooth), mode="valid")
        if self.recovery == "plateau":
            flat = means[smooth:] - means[:-smooth] <= self.margin + 1e-12
            good = np.flatnonzero(flat & ~(means[:-smooth] < half))
        else:
            good = np.flatnonzero(means >= level - 1e-12)
        return float(tested[good[0]]) if len(good) else math.inf

    def words(self) -> list[str]:
        """Return the definitions of dip and recovery as sentences."""
        interval = "since the drift" if self.first == 1 else f"since round {self.first} of the drift"
        if self.last is not None:
            interval = f"in rounds {self.first} to {self.last} of the drift"
        what = "accuracy of a round" if self.window == 1 else f"mean accuracy of {self.window} rounds"
        if self.recovery == "level":
            rule = (
                f"{self.smooth} rounds average at most {100 * self.margin:g} points below the accuracy"
                f" before the drift or, if lower, the final accuracy (if at least {SETTLED} rounds follow, and half"
                " of the loss is regained)"
            )
        else:
            rule = (
                f"{self.smooth} rounds, with half of the loss regained, are followed by {self.smooth} rounds that"
                f" average at most {100 * self.margin:g} points more"
            )
        weights = "each device" if self.by == "devices" else "each test sample"
        return [
            f"Before and final are means of a concept's last {TAIL} rounds, or of its second half if it is shorter"
            f" than {SETTLED}, dip is the lowest {what} {interval}, and 1 round, ... are the accuracies that many"
            f" rounds after the drift's last step; {weights} counts equally.",
            "Recovery is counted in rounds, simulated time and energy of all devices, from the last step of the drift"
            f" until {rule} (∞: not within the run).",
        ]


AFTER = (1, 10, 40, 80)  # rounds after the drift's last step at which accuracy is reported
TAIL = 20  # the most rounds whose mean is a level, before the drift and at the end
SETTLED = 2 * TAIL  # number of rounds after which the final level is not part of the dip
PLAIN = Reading()


@dataclass(frozen=True)
class Change:
    """A drift in one direction, with the rounds (from 1) of its first and last step, and its concept's last round."""

    first: int
    last: int
    end: int


def numbered(rounds: pd.DataFrame) -> pd.DataFrame:
    """Keep training rounds, and number them over all sessions of a cell, from 1, in the new column `number`."""
    training = training_rounds(rounds).sort_values([*RUN, "cell", "start_s"], kind="stable")
    return training.assign(number=training.groupby([*RUN, "cell"]).cumcount() + 1)


def participants(devices: pd.DataFrame, reading: Reading = PLAIN) -> pd.DataFrame:
    """Compute each round's mean personal accuracy and sum of epochs over participants; NaN without participants.

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
        means["epochs"] = training.groupby(keys)["epochs"].sum(min_count=1)
    return means.reindex(columns=[PERSONAL, "epochs"]).reset_index()


def drifted_share(rounds: pd.DataFrame) -> pd.Series:
    """Return the drift's share of devices in each round, which does not change when devices come or go.

    A run without this column has only the share of the devices present.
    """
    present: pd.Series = rounds["drifted"]
    return rounds["drift_share"].fillna(present) if "drift_share" in rounds else present


def changes_of(drifted: np.ndarray) -> list[Change]:
    """Find when the share of drifted devices [rounds] changes; successive steps in one direction are one change."""
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

    Accuracy is the column `accuracy`, the mean over tests on each device present (F's generalized accuracy), or
    `accuracy_by_samples` if the reading averages by samples. Levels are means over a concept's last 20 rounds, or
    over its second half if it has fewer than 40. `reading` defines dip and recovery. (F counts rounds until "a
    steady state" and gives no rule; a model that has lost nothing, such as F's Oracle, needs 0 rounds in F and here.)

    Args:
        rounds: training rounds, as `numbered` returns them.
        of_participants: what `participants` returns with the same reading.
        reading: the definitions of dip and recovery.

    Returns:
        variant, seed, cell, change (1, 2, ...), first_round, last_round; accuracies before, dip, after_1, _10,
        _40, _80 (that many rounds after the last step), final; recovery_rounds, recovery_s, recovery_j (inf:
        never); deviation_before, deviation_final (standard deviations over the devices); personal_before,
        personal_dip, personal_final (accuracies of participants, after local training; if a run has not recorded the
        devices of all rounds, the mean in rounds.csv); epochs_before, epochs_after (sum over participants, per round,
        in the rounds before the drift and in the first rounds after it).
    """
    samples = "_by_samples" if reading.by == "samples" else ""
    # a run that lacks rows of some devices still has the mean accuracy of personal models
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
        series = _series(run)
        since = 1  # the first round of the concept that a change ends
        for number, change in enumerate(changes_of(series["drifted"]), start=1):
            rows.append(
                dict(zip([*RUN, "cell"], key, strict=True))
                | {"change": number, "first_round": change.first, "last_round": change.last}
                | _measure(series, change, since, reading)
            )
            since = change.last
    return pd.DataFrame(rows)


def _series(run: pd.DataFrame) -> dict[str, np.ndarray]:
    """Return the columns that are measured, by name; NaN if the run lacks a column."""
    missing = np.full(len(run), np.nan)
    series = {name: run[name].to_numpy(float) if name in run else missing for name in MEASURED}
    # untested rounds without a share take the share of the next tested round
    return series | {"drifted": drifted_share(run).bfill().ffill().fillna(0.0).to_numpy(float)}


def _measure(series: dict[str, np.ndarray], change: Change, since: int, reading: Reading) -> dict[str, float]:
    before = _level(since, change.first - 1)
    during = slice(change.first - 1, change.end)
    after = slice(change.last - 1, change.end)
    tail = _level(change.last, change.end)
    accuracy, personal = series["accuracy"], series[PERSONAL]
    level, final = _mean(accuracy[before]), _mean(accuracy[tail])
    dip = reading.dip(accuracy[during])
    rounds = reading.recovery_rounds(accuracy[after], level, final, dip)
    reached = math.isfinite(rounds)
    back = change.last - 1 + int(rounds) if reached else 0
    return {
        "before": level,
        "dip": dip,
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


def _level(first: int, last: int) -> slice:
    """Return the rounds to average for the level of a concept, given its first and last round, from 1."""
    rounds = last - first + 1
    return slice(last - min(TAIL, math.ceil(rounds / 2)), last)


def _at(accuracy: np.ndarray, number: int) -> float:
    """Return the accuracy `number` rounds after the drift, or in the next tested round; NaN after the last one."""
    later = accuracy[number - 1 :]
    later = later[np.isfinite(later)]
    return float(later[0]) if len(later) else math.nan


def _mean(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else math.nan
