"""Test how many runs of a study are carried out at the same time."""

import subprocess
import sys
from pathlib import Path

import pytest

from edgefl.learners import building as learners

STUDY = "name: small\nscenario: base.yaml\nseeds: [1]\nvariants: {a: {}}\n"
SCENARIO = """\
name: base
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 1}
learning: {dataset: synthetic, partition: dirichlet, model: logistic}
"""
LOOK = """\
import sys
from edgefl import studies
from edgefl.learners import building as learners
from edgefl.studies.execution import _on_gpu
learners._GPUS = ()
for device in ("auto", "cpu"):
    print(_on_gpu(studies.plan(sys.argv[1]), device), "torch" in sys.modules)
"""


def test_without_a_gpu_nobody_waits_for_pytorch_to_say_so(tmp_path: Path) -> None:
    """The starting process does not load PyTorch, which takes a second, to find that there is no GPU."""
    (tmp_path / "base.yaml").write_text(SCENARIO)
    (tmp_path / "study.yaml").write_text(STUDY)
    command = [sys.executable, "-c", LOOK, str(tmp_path / "study.yaml")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["False False"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="says how Linux shows a GPU")
def test_a_gpu_is_seen_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "_GPUS", ("null",))
    assert learners.may_have_gpu()
    monkeypatch.setattr(learners, "_GPUS", ("nothing-of-this-name",))
    assert not learners.may_have_gpu()
