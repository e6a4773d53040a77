"""Notes on what makes compared runs unlike: sessions, labels, rounds; or on variants that are all alike."""

from typing import Any

import pandas as pd

from edgefl.analysis.measures.metrics import (
    SESSION,
    SPELL,
    rounds_of_all,
    tested_by_all,
    training_rounds,
    unpaired,
)
from edgefl.analysis.measures.scope import left_out
from edgefl.analysis.page.formatting import first_rounds_named
from edgefl.analysis.runs.choices import FIRST_ROUNDS
from edgefl.analysis.runs.scenario_keys import differing, of_points


def unlike(detail: pd.DataFrame, rounds: pd.DataFrame, *, target: bool, by_rounds: bool) -> list[str]:
    """Return notes on trained runs, given the sessions in `detail`; see `verdicts` for `by_rounds`."""
    notes = left_out(detail)
    if listed := unpaired(detail, "labels"):
        what = f"the variants had different labels in session {listed} of one seed"
        notes.append(f"{what}: this is not a paired comparison")
    if not by_rounds:
        return notes
    training = compared_rounds(rounds, detail)
    return notes + _fewer_rounds(training) + (_other_tests(training) if target else [])


def compared_rounds(rounds: pd.DataFrame, detail: pd.DataFrame) -> pd.DataFrame:
    """Keep the training rounds of the sessions of `detail` that are compared."""
    return training_rounds(rounds).merge(detail.loc[detail["in_scope"], SESSION], on=SESSION)


def first_rounds_of(training: pd.DataFrame) -> int:
    """Return the number of first rounds that are averaged, fewer than usual if all variants have fewer rounds."""
    return min(FIRST_ROUNDS, int(rounds_of_all(training).max()))


def identical(rounds: pd.DataFrame, info: pd.DataFrame) -> list[str]:
    """Return a note for each group of variants that have the same rounds, to the last digit.

    Args:
        info: the runs, as in `Runs.info`.
    """
    alike: dict[bytes, list[str]] = {}
    for variant, own in rounds.groupby("variant", sort=False):
        content = pd.util.hash_pandas_object(own.drop(columns="variant"), index=False)
        alike.setdefault(content.to_numpy().tobytes(), []).append(str(variant))
    points, notes = of_points(info), []
    for group in alike.values():
        by_setting: dict[Any, list[dict[str, Any]]] = {}
        for (setting, variant), keys in points.items():
            by_setting.setdefault(setting, []).extend([keys] * (variant in group))
        differ = any(differing(own) for own in by_setting.values())
        why = "the settings in which they differ had no effect" if differ else "their settings are the same"
        if len(group) > 1:
            notes.append(f"variants {', '.join(group[:-1])} and {group[-1]} gave identical results: {why}")
    return notes


def _fewer_rounds(training: pd.DataFrame) -> list[str]:
    """Return a note if variants have tested different rounds, so that fewer count than `verdicts.first_of` names."""
    of_all = tested_by_all(training)
    early = training["round"] <= FIRST_ROUNDS
    if not (early & training["accuracy"].notna() & ~of_all).any():
        return []
    least = (
        training["round"].where(early & of_all).groupby([training[name] for name in SPELL]).nunique().min()
    )
    most = first_rounds_of(training)
    fewer = f", in one session only {least}" if least < most else ""
    which = f"{first_rounds_named(most)} are over the rounds that all variants tested in a session"
    return [f"accuracies of the {which}{fewer}"]


def _other_tests(training: pd.DataFrame) -> list[str]:
    """Return a note if variants test their models in different rounds of the same session."""
    shared = training["accuracy"].notna() & (training["round"] <= rounds_of_all(training))
    if not (shared & ~tested_by_all(training)).any():
        return []
    return [
        "variants test their models in different rounds, and only a tested model can reach a target, so the costs of"
        " a target compare only roughly"
    ]
