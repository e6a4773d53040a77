"""What a change of sessions does to accuracy: the level before, how deep it falls, how long until it is back."""

import pandas as pd

from edgefl.analysis.measures.metrics import RUN, SESSION, TIE, training_rounds, with_spending

MARGIN = 0.01  # of accuracy that may be missing when the level before is counted as regained
OF_RUN = [*RUN, "cell"]


def transitions(rounds: pd.DataFrame, sessions: pd.DataFrame) -> pd.DataFrame:
    """Measure each change of sessions.

    The level before is the last accuracy of the session before, tested on that session's labels: where the labels
    change, the two sessions are tests of different difficulty, and what compares is variants, not sessions.

    Returns:
        variant, seed, cell, session, accuracy_before (NaN in a cell's first session), accuracy_dip (the lowest one,
        the
        opening model's included), dip (before minus lowest), and recovery_rounds, recovery_s, recovery_j: training
        rounds, simulated seconds and joules of all devices from the session's start (probe rounds included) to the
        first model that is at most `MARGIN` below the level before; 0 if it opens so, inf: not in this session.

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
