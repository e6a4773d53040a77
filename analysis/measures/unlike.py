"""Notes on what makes compared runs unlike: sessions, labels, rounds, ends."""

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
from edgefl.analysis.measures.verdicts import WHEN_STOPPED, first_of
from edgefl.analysis.runs.choices import FIRST_ROUNDS


def unlike(
    detail: pd.DataFrame, info: pd.DataFrame, rounds: pd.DataFrame, *, target: bool, by_rounds: bool
) -> list[str]:
    """Return notes on trained runs, given the sessions in `detail`; see `verdicts` for `by_rounds`."""
    notes = left_out(detail)
    if listed := unpaired(detail, "labels"):
        what = f"the variants had different labels in session {listed} of one seed"
        notes.append(f"{what}: this is not a paired comparison")
    notes += _cut_tails(info, rounds) if target else []
    if not by_rounds:
        return notes
    training = training_rounds(rounds).merge(detail.loc[detail["in_scope"], SESSION], on=SESSION)
    return notes + _fewer_rounds(training, rounds) + (_other_tests(training) if target else [])


def _cut_tails(info: pd.DataFrame, rounds: pd.DataFrame) -> list[str]:
    """Return a note if `stop` ended some runs, in which tails count in full, but not all runs."""
    stopped = info["stopped"].str.contains(WHEN_STOPPED)  # not if no score ended the run
    if stopped.all() or not stopped.any() or not rounds["energy_tail_j"].any():
        return []
    names = ", ".join(map(str, info.loc[stopped, "variant"].unique()))
    return [
        f"where `stop` ended a run ({names}), its last radio tails count in full; in the other runs the next"
        " transfers cut them short, so joules to a target compare only roughly"
    ]


def _fewer_rounds(training: pd.DataFrame, rounds: pd.DataFrame) -> list[str]:
    """Return a note if variants have tested different rounds, so that fewer count than `first_of` names."""
    of_all = tested_by_all(training)
    early = training["round"] <= FIRST_ROUNDS
    if not (early & training["accuracy"].notna() & ~of_all).any():
        return []
    counted = training["round"].where(early & of_all).groupby([training[name] for name in SPELL]).nunique()
    which = f"{first_of(rounds)} are over the rounds that all variants tested in a session"
    return [f"accuracies of the {which}, in one session only {counted.min()}"]


def _other_tests(training: pd.DataFrame) -> list[str]:
    """Return a note if variants test their models in different rounds of the same session."""
    shared = training["accuracy"].notna() & (training["round"] <= rounds_of_all(training))
    if not (shared & ~tested_by_all(training)).any():
        return []
    return [
        "variants test their models in different rounds, and only a tested model can reach a target, so the costs of"
        " a target compare only roughly"
    ]
