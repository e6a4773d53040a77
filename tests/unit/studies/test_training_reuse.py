"""Test which run of a study trains for which other runs, up to which session, and the order in which runs begin."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgefl.learners import building as learners
from edgefl.learning.warm_starts.average import Average
from edgefl.run_directory.journal import LENT
from edgefl.scenario.data_loading import Loaded
from edgefl.studies import StudyOptions, plan
from edgefl.studies.directory import FILE
from edgefl.studies.scheduler import RunScheduler
from edgefl.studies.states import State
from edgefl.studies.training_reuse import ReusePlan, lent_after, plan_reuse

BASE = """\
name: base
devices: {count: 4}
sessions: {name: schedule, count: 6, rounds: 1}
learning: {dataset: digits, partition: iid, model: logistic, pilot_sessions: 2}
"""


class Otherwise(Average):
    """A subclass of `average` that changes the opening model, but declares nothing about it."""

    def opening(self, current: Any, saved: Any, gradient: Any) -> Any:
        raise NotImplementedError


def reuse_of(folder: Path, variants: dict[str, str], base: str = BASE) -> dict[str, ReusePlan]:
    (folder / "base.yaml").write_text(base)
    listed = "\n".join(f"  {name}: {{{changes}}}" for name, changes in variants.items())
    (folder / "study.yaml").write_text(f"name: s\nscenario: base.yaml\nseeds: [0]\nvariants:\n{listed}\n")
    planned = plan_reuse(plan(folder / "study.yaml").prepared(Loaded(download=False)))
    return {path.parent.name: reuse for path, reuse in planned.items()}


def start(name: str) -> str:
    return f"learning.warm_start: {name}"


@pytest.mark.parametrize(
    ("names", "leads"),
    [
        (("previous", "continuous", "average"), "average"),
        (("previous", "continuous", "average", "similarity"), "similarity"),
    ],
)
def test_one_that_keeps_both_sessions_leads(names: tuple[str, ...], leads: str, tmp_path: Path) -> None:
    """`previous` saves one session only, so no run could continue from it; a run with probes trains for others."""
    plans = reuse_of(tmp_path, {name: start(name) for name in names})
    lender = Path(leads, "seed-0")
    assert plans[leads].lender is None
    assert plans[leads].lends == "after_two"
    for name in set(names) - {leads}:
        one = plans[name]
        assert (one.lender, one.until, one.snapshots) == (
            lender,
            *((2, 1) if name == "continuous" else (4, 2)),
        )


def test_without_one_that_leads_the_first_trains_the_pilot_sessions(tmp_path: Path) -> None:
    plans = reuse_of(tmp_path, {name: start(name) for name in ("previous", "continuous")})
    assert (plans["continuous"].lender, plans["continuous"].until) == (Path("previous/seed-0"), 2)
    assert plans["previous"].lends == "after_pilot"


def test_one_that_lends_all_of_itself_leaves_a_snapshot_before_each_session(tmp_path: Path) -> None:
    """A run whose sessions are all reused writes a snapshot before each of the sessions 2 to `until` + 1."""
    variants = {name: start(name) for name in ("average", "previous", "continuous")}
    variants["narrow"] = variants["average"] + ", radio.bandwidth_hz: 20.0e+6"
    plans = reuse_of(tmp_path, variants)
    assert (plans["average"].lends, plans["narrow"].whole) == ("every_session", True)
    assert (plans["previous"].until, plans["previous"].snapshots) == (4, 4)
    assert (plans["continuous"].until, plans["continuous"].snapshots) == (2, 2)


@pytest.mark.parametrize(
    "base",
    [
        BASE.replace("pilot_sessions: 2", "pilot_sessions: 2, drift: {name: label_swap, at: 3}"),
        BASE + "layout: {rings: 1}\n",
    ],
)
def test_where_time_and_order_count_they_share_the_pilot_sessions(base: str, tmp_path: Path) -> None:
    plans = reuse_of(tmp_path, {name: start(name) for name in ("average", "previous")}, base)
    assert plans["previous"].until == 2


def test_one_that_inherits_may_open_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEFL_ALLOW_CODE", "1")
    own = "{name: '%s:Otherwise', history: %d}"
    plans = reuse_of(tmp_path, {f"of_{many}": start(own % (__name__, many)) for many in (3, 4)})
    assert (plans["of_4"].lender, plans["of_4"].until) == (Path("of_3/seed-0"), 2)


def test_snapshots_that_are_there_are_counted(tmp_path: Path) -> None:
    assert lent_after(tmp_path) == 0
    (tmp_path / "lent").mkdir()
    for name in ("000004.json", "000004.safetensors", "000009.safetensors"):
        (tmp_path / "lent" / name).touch()
    assert lent_after(tmp_path) == 1, "one snapshot is incomplete"


def test_what_only_takes_waits_for_the_next_familys_training(tmp_path: Path) -> None:
    """Runs that only reuse training wait while runs of the next family train, in the order of the study's file."""
    shared, runs = {}, []
    for family in "abc":
        family_paths = [Path(family + kind) for kind in ("1-trains", "1-takes", "2-trains", "2-takes")]
        for path in family_paths:
            lender = path.with_name(path.name.replace("takes", "trains"))
            takes = lender != path
            shared[path] = ReusePlan(lender if takes else None, whole=takes, family=family_paths)
            runs.append(SimpleNamespace(path=path))
    runs.append(SimpleNamespace(path=Path("alone")))
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
    """A run begins once the run that trains for it has written a snapshot, after the pilot or two sessions later."""
    lender, one, two = (Path(name) for name in ("lender", "one", "two"))
    family = [lender, two, one]
    reuse = {
        lender: ReusePlan(lends="after_two", family=family),
        two: ReusePlan(lender, until=3, snapshots=2, family=family),
        one: ReusePlan(lender, until=1, snapshots=1, family=family),
    }
    states = dict.fromkeys(family, State.PLANNED)
    queue = RunScheduler(
        tmp_path, [SimpleNamespace(path=path) for path in family], reuse, states, StudyOptions()
    )
    queue.cores = 2
    (tmp_path / FILE).touch()
    begun = [queue.take(), queue.take()]
    for session in (2, 4):
        (tmp_path / lender / LENT).mkdir(parents=True, exist_ok=True)
        (tmp_path / lender / LENT / f"{session}.json").touch()
        begun += [queue.take(), queue.take()]
    assert [task and task.run.path for task in begun] == [lender, None, one, None, two, None]
    assert [task.threads for task in begun if task] == [2, 1, 1], "the run that trains begins alone"


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
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "study.yaml").write_text("name: small\nscenario: base.yaml\nseeds: [1]\nvariants: {a: {}}\n")
    command = [sys.executable, "-c", LOOK, str(tmp_path / "study.yaml")]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == ["False False"] * 2


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
def test_a_gpu_is_seen_by_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(learners, "_GPUS", ("null",))
    assert learners.may_have_gpu()
    monkeypatch.setattr(learners, "_GPUS", ("nothing-of-this-name",))
    assert not learners.may_have_gpu()
