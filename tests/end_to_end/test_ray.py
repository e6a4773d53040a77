"""Test that a study on a Ray cluster of two local nodes loses nothing when workers or a node are killed."""

import json
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from edgefl.engine.records import Round
from edgefl.run_directory.interruption import Interrupted
from edgefl.run_directory.snapshot import Every
from edgefl.studies import IncompleteStudy, StudyOptions, plan, run
from edgefl.studies.on_ray import MOST_LOSSES, OnRay
from edgefl.studies.states import State, state_of
from tests.end_to_end.directories import SMALL
from tests.refusals import refused_at
from tests.tools.kill import differences

BASE = SMALL.replace("count: 4, rounds: 3", "count: 3, rounds: 12").replace(
    "warm_start: previous", "algorithm: scaffold"
)
VARIANTS = """\
  trains: {}
  takes: {radio.bandwidth_hz: 20.0e+6}
  late: {rounds.deadline_s: 0.00055}
"""
EVERY = Every(rounds=2)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    path = tmp_path / "study.yaml"
    path.write_text(f"name: ray\nscenario: base.yaml\nseeds: [3, 4]\nvariants:\n{VARIANTS}")
    return path


@pytest.fixture
def alone(study: Path, tmp_path: Path) -> Path:
    return run(plan(study), tmp_path / "alone", StudyOptions(executor="inline", share=False))


def told(path: Path) -> dict[str, Any]:
    with suppress(OSError, ValueError):
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    return {}


def check_nothing_is_lost(out: Path, alone: Path) -> None:
    for path in alone.rglob("run.json"):
        assert differences(out / path.parent.relative_to(alone), path.parent) == []
    assert not [*out.rglob("lent"), *out.rglob("snapshots"), *out.glob("claims")]


def test_as_in_one_process_and_reported_round_by_round(
    cluster: Any, study: Path, alone: Path, tmp_path: Path
) -> None:
    rounds: dict[str, int] = {}
    complete: list[str] = []

    def progress(label: str, report: Round | Path) -> None:
        if isinstance(report, Path):
            complete.append(label)
        else:
            rounds[label] = rounds.get(label, 0) + 1

    out = run(plan(study), tmp_path / "out", StudyOptions(executor=OnRay(), progress=progress))
    check_nothing_is_lost(out, alone)
    assert sorted(complete) == sorted(run_.label for run_ in plan(study).runs)
    assert rounds["trains seed 3"] == 36


class Killer(threading.Thread):
    """A thread that kills each run's process a few rounds after its start, up to a given number of kills."""

    def __init__(self, out: Path, most: int, runs: str = "*/*", again: bool = False) -> None:
        super().__init__(daemon=True)
        self.out, self.most, self.runs, self.again = out, most, runs, again
        self.killed: dict[Path, int] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            for path in self.out.glob(f"{self.runs}/run.json"):
                if (path in self.killed and not self.again) or len(self.killed) == self.most:
                    continue
                about = told(path)
                rounds = path.with_name("rounds.csv")
                if about.get("status") != "running" or not rounds.exists():
                    continue
                if len(rounds.read_text().splitlines()) < 10:
                    continue
                pid = about["process"]["pid"]
                if pid == self.killed.get(path):
                    continue
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    self.killed[path] = pid


def test_workers_are_killed_in_the_middle(cluster: Any, study: Path, alone: Path, tmp_path: Path) -> None:
    killer = Killer(tmp_path / "out", most=3)
    killer.start()
    out = run(plan(study), tmp_path / "out", StudyOptions(executor=OnRay(), every=EVERY))
    killer.over.set()
    assert len(killer.killed) == 3
    assert all("resumed" in told(path) for path in killer.killed), "runs must resume from a snapshot"
    check_nothing_is_lost(out, alone)


def test_a_run_that_is_lost_again_and_again_fails(cluster: Any, study: Path, tmp_path: Path) -> None:
    """A run whose worker is always killed, as for lack of memory, fails; all other runs continue."""
    killer = Killer(tmp_path / "out", most=MOST_LOSSES, runs="late/seed-3", again=True)
    killer.start()
    with pytest.raises(IncompleteStudy, match=r"late seed 3: its process was lost 3 times") as error:
        run(plan(study, [3]), tmp_path / "out", StudyOptions(executor=OnRay(), every=EVERY))
    killer.over.set()
    assert len(error.value.failures) == 1
    assert state_of(tmp_path / "out", Path("trains", "seed-3")) is State.COMPLETED
    assert state_of(tmp_path / "out", Path("late", "seed-3")) is not State.RUNNING


def test_a_node_goes(cluster: Any, study: Path, alone: Path, tmp_path: Path) -> None:
    """A study completes although it loses one of its two nodes while each node carries out a run."""
    node = cluster.add_node(num_cpus=1, object_store_memory=80_000_000)

    def drop() -> None:
        while len(list((tmp_path / "out").glob("*/*/rounds.csv"))) < 3:
            time.sleep(0.02)
        cluster.remove_node(node, allow_graceful=False)

    thread = threading.Thread(target=drop, daemon=True)
    thread.start()
    out = run(plan(study), tmp_path / "out", StudyOptions(executor=OnRay(), every=EVERY, share=False))
    thread.join()
    check_nothing_is_lost(out, alone)


def test_interrupted_and_gone_on_with(cluster: Any, study: Path, alone: Path, tmp_path: Path) -> None:
    seen = 0

    def leave(label: str, report: Round | Path) -> None:
        nonlocal seen
        seen += 1
        if seen == 40:
            raise Interrupted

    with pytest.raises(Interrupted):
        run(plan(study), tmp_path / "out", StudyOptions(executor=OnRay(), every=EVERY, progress=leave))
    states = {told(path).get("status") for path in (tmp_path / "out").rglob("run.json")}
    assert "running" not in states
    out = run(plan(study), tmp_path / "out", StudyOptions(executor=OnRay(), every=EVERY))
    check_nothing_is_lost(out, alone)


def test_a_run_that_fails_is_told(cluster: Any, study: Path, tmp_path: Path) -> None:
    few = "variants: {few: {devices.count: null, devices.density_per_km2: 3}}\n"
    study.write_text(f"name: few\nscenario: base.yaml\nseeds: [1, 2]\n{few}")
    study.with_name("base.yaml").write_text(
        BASE.partition("learning")[0] + "workload: {payload_bits: 1000, flops_per_sample: 1}\n"
    )
    with pytest.raises(IncompleteStudy, match=r"few seed \d: .*there is no device"):
        run(plan(study, [3, 1, 2]), tmp_path / "out", StudyOptions(executor=OnRay()))


def test_no_gpu_for_a_share_of_one(cluster: Any, study: Path, tmp_path: Path) -> None:
    with refused_at("--gpus 0.25", "GPU"):
        run(plan(study), tmp_path / "out", StudyOptions(executor=OnRay(gpus=0.25)))
