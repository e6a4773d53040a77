"""Test the order in which a study's runs begin, and how many are carried out at the same time."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgefl.learners import building as learners
from edgefl.run_directory.journal import LENT
from edgefl.studies import StudyOptions
from edgefl.studies.directory import FILE
from edgefl.studies.scheduler import RunScheduler
from edgefl.studies.states import State
from edgefl.studies.training_reuse import ReusePlan


def test_what_only_takes_waits_for_the_next_familys_training(tmp_path: Path) -> None:
    """Runs that only reuse training wait while runs of the next family train, in the order of the study's file."""
    shared, runs = {}, []
    for family in "abc":
        family_paths = [Path(family + kind) for kind in ("1-trains", "1-takes", "2-trains", "2-takes")]
        for path in family_paths:
            lender = path.with_name(path.name.replace("takes", "trains"))
            takes = lender != path
            shared[path] = ReusePlan(lender if takes else None, whole=takes, family=family_paths)
            runs.append(run_of(path))
    runs.append(run_of(Path("alone")))
    shared[Path("alone")] = ReusePlan(family=[Path("alone")])
    states = dict.fromkeys(shared, State.PLANNED)
    queue = RunScheduler(tmp_path, runs, shared, states, StudyOptions())
    assert [str(run.path) for run in queue.to_do] == [
        *("a1-trains", "a2-trains"),
        *("b1-trains", "b2-trains", "a1-takes", "a2-takes"),
        *("c1-trains", "c2-trains", "b1-takes", "b2-takes"),
        *("alone", "c1-takes", "c2-takes"),
    ]
    assert [run.path for run in queue.new] == [run.path for run in runs]


def test_a_run_begins_when_its_lender_has_left_enough(tmp_path: Path) -> None:
    """A run begins once its lender has written its snapshot, after the pilot session or two sessions later."""
    lender, one, two = (Path(name) for name in ("lender", "one", "two"))
    family = [lender, two, one]
    reuse = {
        lender: ReusePlan(lends="after_two", family=family),
        two: ReusePlan(lender, until=3, snapshots=2, family=family),
        one: ReusePlan(lender, until=1, snapshots=1, family=family),
    }
    states = dict.fromkeys(family, State.PLANNED)
    queue = RunScheduler(tmp_path, [run_of(path) for path in family], reuse, states, StudyOptions())
    queue.cores = 2
    (tmp_path / FILE).touch()
    begun = [queue.take(), queue.take()]
    for session in (2, 4):
        (tmp_path / lender / LENT).mkdir(parents=True, exist_ok=True)
        (tmp_path / lender / LENT / f"{session}.json").touch()
        begun += [queue.take(), queue.take()]
    assert [task and task.run.path for task in begun] == [lender, None, one, None, two, None]
    assert [task.threads for task in begun if task] == [2, 1, 1], "the lender begins alone"


def run_of(path: Path) -> Any:
    return SimpleNamespace(path=path)


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
