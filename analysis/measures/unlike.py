"""Notes on what makes compared runs unlike: sessions, labels, rounds."""

import pandas as pd

from edgefl.analysis.measures.metrics import SESSION, rounds_of_all, training_rounds, unpaired
from edgefl.analysis.measures.scope import left_out
from edgefl.analysis.measures.verdicts import first_of
from edgefl.analysis.runs.choices import FIRST_ROUNDS


def unlike(detail: pd.DataFrame, rounds: pd.DataFrame, *, by_rounds: bool) -> list[str]:
    """Return notes on trained runs, given the sessions in `detail`; see `verdicts` for `by_rounds`."""
    notes = left_out(detail)
    if listed := unpaired(detail, "labels"):
        what = f"the variants had different labels in session {listed} of one seed"
        notes.append(f"{what}: this is not a paired comparison")
    return notes + (_shorter_sessions(detail, rounds) if by_rounds else [])


def _shorter_sessions(detail: pd.DataFrame, rounds: pd.DataFrame) -> list[str]:
    """Return a note if variants have different numbers of rounds, so that fewer count than `first_of` names."""
    training = training_rounds(rounds).merge(detail.loc[detail["in_scope"], SESSION], on=SESSION)
    counted = rounds_of_all(training).clip(upper=FIRST_ROUNDS)
    if not (training["round"].clip(upper=FIRST_ROUNDS) > counted).any():
        return []
    which = f"{first_of(rounds, detail)} are over the rounds that all variants have in a session"
    fewer = f", in one session only {int(counted.min())}" if counted.min() < counted.max() else ""
    return [f"accuracies of the {which}{fewer}"]
