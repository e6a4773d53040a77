"""Test that a killed study, with shared training and snapshots, continues to the results of an undisturbed one."""

import json
import shutil
from pathlib import Path

import pytest

from edgefl.engine.records import Round
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.snapshot import Every
from edgefl.studies import StudyOptions, plan, run
from tests.end_to_end.directories import SMALL
from tests.tools import kill_study
from tests.tools.kill import differences

# a short run, trained with SCAFFOLD
BASE = SMALL.replace("count: 4, rounds: 3", "count: 3, rounds: 2").replace(
    "logistic", "logistic\n  algorithm: scaffold"
)
# `takes` reuses all training of `trains`, `similar` reuses its pilot session, and `late` reuses less than that.
VARIANTS = """\
  trains: {}
  takes: {radio.bandwidth_hz: 20.0e+6}
  similar: {learning.warm_start: similarity}
  late: {rounds.deadline_s: 0.00055}
"""
EVERY = Every(rounds=2)
KILLS = 1  # kills of each kind; `python -m tests.tools.kill_study` makes more
APART = 5  # rounds between two kills, fewer than the six rounds of a run


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "study.yaml"
    path.write_text(f"name: killed\nscenario: base.yaml\nseeds: [3]\nvariants:\n{VARIANTS}")
    return path


def killed(out: Path) -> None:
    """Change the copy of a running study to look as if its process had been killed."""
    for path in [*out.rglob("run.json"), *out.glob("claims/**/*.json")]:
        told = json.loads(path.read_text())
        owner = told if "pid" in told else told.get("process")
        if owner:
            owner["started"] = 1  # the process that has this id now began at a different time
            path.write_text(json.dumps(told))


def test_wherever_it_is_left(study: Path, tmp_path: Path) -> None:
    """A study continues correctly if it was killed, or interrupted, in any of its runs."""
    alone, whole = tmp_path / "alone", tmp_path / "whole"
    rounds: list[Round] = []

    def seen(label: str, report: Round | Path) -> None:
        if isinstance(report, Round):
            rounds.append(report)
            shutil.copytree(whole, tmp_path / f"killed-{len(rounds)}")

    run(plan(study), alone, StudyOptions(jobs=1, share=False))
    run(plan(study), whole, StudyOptions(jobs=1, every=EVERY, progress=seen))
    for number in range(2, 1 + len(rounds), APART):
        left = 0

        def leave(label: str, report: Round | Path, number: int = number) -> None:
            nonlocal left
            left += isinstance(report, Round)
            if left == number:
                raise Interrupted

        with pytest.raises(Interrupted):
            run(
                plan(study),
                tmp_path / f"interrupted-{number}",
                StudyOptions(jobs=1, every=EVERY, progress=leave),
            )
        killed(tmp_path / f"killed-{number}")
        for how in ("killed", "interrupted"):
            out = tmp_path / f"{how}-{number}"
            run(plan(study), out, StudyOptions(jobs=1, every=EVERY))
            for path in alone.rglob("run.json"):
                there = out / path.parent.relative_to(alone)
                assert differences(there, path.parent) == [], f"tables differ: {how} after round {number}"
            assert not [*out.rglob("lent"), *out.rglob("snapshots"), *out.glob("claims")]


@pytest.mark.parametrize("group", [False, True], ids=["the study's process", "all processes at once"])
def test_a_study_killed_at_random_instants(group: bool, study: Path) -> None:
    tally = kill_study.check(study, KILLS, seed=1, group=group)
    assert tally.kills == KILLS
    assert tally.differences == []
