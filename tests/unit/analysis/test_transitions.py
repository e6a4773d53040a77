"""Compare dip and recovery at a change of sessions with hand-computed values."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from edgefl.analysis import load_runs
from edgefl.analysis.measures.metrics import transitions

Write = Callable[..., Path]


def test_dip_and_recovery_are_counted_from_the_start_of_the_session(write_run: Write) -> None:
    """Session 2 opens at 0.3, falls to 0.25, and recovers in round 3 at 0.79, within a point of the last 0.8.

    Its probe round (10 s, 5 J) counts, so recovery takes 40 s and 20 J. Session 3 opens higher, so it needs 0 rounds.
    """
    rounds = [
        *({"session": 1, "round": t, "accuracy": a} for t, a in ((1, 0.5), (2, 0.8))),
        {"session": 2, "round": 1, "phase": "probe"},
        *({"session": 2, "round": t, "accuracy": a} for t, a in ((1, 0.25), (2, 0.6), (3, 0.79), (4, 0.7))),
        {"session": 3, "round": 1, "accuracy": 0.9},
        {"session": 4, "round": 1, "accuracy": 0.5},
    ]
    sessions = [{"session": s, "accuracy_start": a} for s, a in ((1, 0.1), (2, 0.3), (3, 0.7), (4, 0.4))]
    runs = load_runs(write_run("a", rounds, sessions))
    found = transitions(runs.rounds, runs.sessions).set_index("session")
    assert math.isnan(found.loc[1, "dip"])
    assert math.isnan(found.loc[1, "recovery_rounds"])
    assert found.loc[2, "dip"] == pytest.approx(0.8 - 0.25)
    assert found.loc[2, ["recovery_rounds", "recovery_s", "recovery_j"]].tolist() == [3, 40, 20]
    assert found.loc[3, "recovery_rounds"] == 0
    assert math.isinf(found.loc[4, "recovery_rounds"])
    assert found.loc[4, "accuracy_dip"] == 0.4


def test_runs_without_training_have_no_transitions(write_run: Write) -> None:
    runs = load_runs(
        write_run("a", [{"session": s, "round": 1} for s in (1, 2)], [{"session": 1}, {"session": 2}])
    )
    assert transitions(runs.rounds, runs.sessions)["recovery_rounds"].isna().all()
