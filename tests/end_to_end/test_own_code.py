"""Test that a study, shared training, a resumed run and a merge notice that user code was edited."""

import os
import shutil
from pathlib import Path

import pandas as pd
import pytest

from edgefl.config import outside
from tests.tools.forked import Command

MINE = """\
from edgefl.learning.algorithms.fedavg import FedAvg


class Mine(FedAvg):
    def correct(self, grads, local, start, state, own):
        return grads * 1
"""
SCENARIO = """\
name: own
devices: {count: 4}
sessions: {name: schedule, count: 2, rounds: 3}
learning: {dataset: digits, model: logistic, local: {batch: 16}, algorithm: "mine:Mine"}
"""
STUDY = """\
name: own
scenario: own.yaml
seeds: [1, 2]
reference: a
variants: {a: {}, b: {radio.bandwidth_hz: 2.0e+7}}
"""
FURTHER = STUDY.replace("}}", "}, c: {radio.bandwidth_hz: 4.0e+7}}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MINE)
    (tmp_path / "own.yaml").write_text(SCENARIO)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path


def edit(folder: Path) -> None:
    (folder / "mine.py").write_text(MINE.replace("grads * 1", "grads * 0.0"))


def edgefl(folder: Path, *arguments: str, code: int = 0) -> str:
    if arguments[0] == "study":
        arguments += ("--executor", "inline")
    command = Command(arguments, folder=folder, environment={**os.environ, outside.ALLOW: "1"})
    written, errors = command.communicate()
    assert command.returncode == code, (errors + written).decode()
    return (errors + written).decode()


def test_a_study_does_not_go_on_with_other_code(folder: Path) -> None:
    edgefl(folder, "study", "study.yaml", "--out", "o", "--seed", "1")
    first = (folder / "o" / "a" / "seed-1" / "rounds.csv").read_bytes()
    edit(folder)
    said = edgefl(folder, "study", "study.yaml", "--out", "o", code=2)
    assert "a/seed-1: the code of mine is" in said
    assert "choose another --out" in said
    # a variant that is added after the edit does not reuse training by the old code
    (folder / "study.yaml").write_text(FURTHER)
    said = edgefl(folder, "study", "study.yaml", "--out", "o", code=2)
    assert "the code of mine is" in said
    assert not (folder / "o" / "c").exists()
    assert (folder / "o" / "a" / "seed-1" / "rounds.csv").read_bytes() == first


def test_a_run_does_not_go_on_with_other_code(folder: Path) -> None:
    """A run that was killed halfway is not resumed after its code has changed."""
    edgefl(folder, "run", "own.yaml", "--out", "whole")
    shutil.copytree(folder / "whole", folder / "left")
    left = folder / "left"
    lines = (left / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (left / "journal.jsonl").write_bytes(b"".join(lines[: len(lines) // 2]))
    (left / "run.json").write_text(
        (left / "run.json").read_text().replace('"status": "completed"', '"status": "interrupted"')
    )
    shutil.copytree(left, folder / "again")
    edgefl(folder, "resume", "left")
    whole, gone_on = (pd.read_csv(folder / name / "rounds.csv") for name in ("whole", "left"))
    pd.testing.assert_frame_equal(whole, gone_on)
    edit(folder)
    said = edgefl(folder, "resume", "again", code=2)
    assert "the code of mine is" in said
