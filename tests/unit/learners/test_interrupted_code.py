"""Test that a run interrupted inside own code resumes to the same bytes, even if the code catches the exception."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import edgefl
from edgefl.contract import BEGIN, UPLOAD, Evaluation, LocalRound, Now, SessionStart
from edgefl.learners.own import Assignment
from tests.unit.learners.test_own import SCENARIO, Ridge

# a deadline that not all devices meet, so that some rounds have too few updates, among them each session's last round
SOME_FAIL = ["rounds.deadline_s=0.4021", "rounds.min_updates=8", "sessions.rounds=4"]


class Bell:
    """Send SIGINT in the middle of a method's n-th call."""

    def __init__(self, method: str = "", number: int = 0, *, caught: bool = False) -> None:
        self.method, self.left, self.caught = method, number, caught

    def ring(self, method: str) -> bool:
        """Return whether the signal came, and the code caught it."""
        self.left -= method == self.method
        if method != self.method or self.left:
            return False
        self.method = ""
        try:
            os.kill(os.getpid(), signal.SIGINT)
            # Python handles a signal between two instructions, at the latest in this call
            signal.sigpending()
        except KeyboardInterrupt:
            if not self.caught:
                raise
            return True
        return False


class Counting(Ridge):
    """A learner that changes its state in each method."""

    bell = Bell()

    def __init__(self, told: Assignment) -> None:
        super().__init__(told)
        self.calls, self.uploads = np.zeros(3), dict.fromkeys(told.devices, 0)

    def changes(self, method: str, which: int) -> float:
        self.calls[which] += 1.0
        wrong = self.bell.ring(method)
        self.calls[which] += 0.5 + wrong
        return float(self.calls[which])

    def session(self, start: SessionStart) -> Iterator[Any]:
        self.bell.ring("session")
        yield from super().session(start)

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        number = self.changes("train", 0)
        local = super().train(ids, round_, now)
        many = len(ids)
        scalars = {"trainings": (number,) * many, "uploads": (0.0,) * many}
        return replace(local, scalars=scalars, after={"uploads": UPLOAD})

    def uploaded(self, ids: Sequence[int]) -> Mapping[str, tuple[float, ...]]:
        self.bell.ring("uploaded")
        for id_ in ids:
            self.uploads[id_] += 1
        return {"uploads": tuple(self.uploads[id_] + self.calls[0] for id_ in ids)}

    def aggregate(self, ids: Sequence[int]) -> None:
        self.changes("aggregate", 1)
        super().aggregate(ids)

    def evaluate(self, present: Sequence[int] = ()) -> Evaluation:
        tests = self.changes("evaluate", 2)
        return replace(super().evaluate(present), scalars={"tests": tests, "sum": float(self.calls.sum())})

    def state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, facts = super().state()
        return {**arrays, "calls": self.calls}, {**facts, "uploads": list(self.uploads.values())}

    def restore(self, arrays: Mapping[str, np.ndarray], facts: Mapping[str, Any]) -> None:
        super().restore(arrays, facts)
        self.calls, self.uploads = arrays["calls"], dict(enumerate(facts["uploads"]))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return edgefl.simulate(
        edgefl.load_scenario(SCENARIO, SOME_FAIL), tmp_path_factory.mktemp("whole") / "run", learner=Counting
    )


def test_in_some_rounds_no_update_is_aggregated(whole: Path) -> None:
    assert pd.read_csv(whole / "rounds.csv").version.tolist() == [0, 0, 1, 1, 2, 3, 4, 4]


@pytest.mark.parametrize(
    ("method", "numbers", "caught"),
    [
        ("session", (2,), False),
        ("train", (1, 4, 8), False),
        ("train", (5,), True),
        ("uploaded", (4,), False),
        ("aggregate", (1, 4), False),
        ("evaluate", (1, 4, 8), False),
        ("evaluate", (5,), True),
    ],
)
def test_an_interruption_inside_a_learner_changes_no_number(
    method: str,
    numbers: tuple[int, ...],
    caught: bool,
    whole: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = edgefl.load_scenario(SCENARIO, SOME_FAIL)
    for number in numbers:
        out = tmp_path / f"{number}"
        monkeypatch.setattr(Counting, "bell", Bell(method, number, caught=caught))
        with pytest.raises(KeyboardInterrupt):
            edgefl.simulate(scenario, out, learner=Counting, snapshot_rounds=100)
        assert list((out / "snapshots").iterdir())
        edgefl.resume(out, learner=Counting)
        for table in whole.glob("*.csv"):
            assert (out / table.name).read_bytes() == table.read_bytes(), (number, table.name)
