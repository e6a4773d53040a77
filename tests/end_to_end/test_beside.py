"""Test that a run that trains in a forked process writes the same bytes as one that trains in its own process."""

import math
import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest
import torch

from edgefl import load_scenario, simulate
from edgefl.contract import LocalRoundUnderWay
from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.learners import beside
from edgefl.run.api import resume
from edgefl.run_directory.interruption import Interrupted
from tests.tools import kill
from tests.tools.leaving import leave

SHORT = "sessions.count=2; "
CELLS = (
    "layout={sites: [[0, 0], [60, 0]], federations: all};"
    " radio={preset: journal, bandwidth_hz: 1.0e+6, propagation: {shadowing: spatial}};"
    " cloud={every: 2, backhaul_bps: 1.0e+7}; learning.warm_start=previous"
)
WILD = "learning.local.lr=90; learning.algorithm={name: fedprox, mu: 1.0e+9}"
# overrides, and whether radio and training overlap: they do only if training cannot change a round's work
CASES = {
    "fedprox": ("", True),
    "losses and lengths of updates": ("rounds.selector={name: oort, count: 4}", True),
    "scaffold on the nr radio": ("learning.algorithm=scaffold; radio.preset=nr", True),
    "updates as they arrive": ("rounds.server={name: fedbuff, buffer: 3, concurrency: 5}", True),
    "a cloud above two cells": (CELLS, True),
    "models of devices": ("learning.algorithm=apfl; learning.evaluation.tested_on=devices", True),
    "early stopping": ("learning.local.epochs=3; learning.local.early_stopping=0.02", False),
    "a codec": ("learning.uplink_codec=qsgd", False),
    "updates that may be dropped": ("rounds.not_finite=drop", False),
}
NEEDS_FORK = pytest.mark.skipif(
    not beside.may_fork(2, torch.device("cpu"), {}), reason="this system cannot fork, or has a GPU"
)


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Make runs fork at their first round; return the forked processes."""
    forked: list[int] = []

    def fork(really: Any = os.fork) -> int:
        forked.append(really())
        return forked[-1]

    monkeypatch.setattr(beside, "FORKS_AFTER_S", 0.0)
    monkeypatch.setattr(os, "fork", fork)
    return forked


def scenario_of(digits: Path, overrides: str) -> Any:
    return load_scenario(digits, [one for one in f"{SHORT}{overrides}".split("; ") if one])


@pytest.mark.parametrize(
    ("threads", "device", "code", "gpu"),
    [(1, "cpu", {}, False), (2, "meta", {}, False), (2, "cpu", {"own.py": "a"}, False), (2, "cpu", {}, True)],
)
def test_what_forbids_a_fork(
    threads: int, device: str, code: dict[str, str], gpu: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a GPU, even an unused one, a run does not fork: PyTorch would refuse gradients in the child process."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: gpu)
    assert not beside.may_fork(threads, torch.device(device), code)


@NEEDS_FORK
@pytest.mark.parametrize(("overrides", "foretold"), CASES.values(), ids=CASES.keys())
def test_training_beside_the_clock_changes_no_byte(
    overrides: str,
    foretold: bool,
    digits: Path,
    tmp_path: Path,
    forks: list[int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario, under_way = scenario_of(digits, overrides), []

    def seen(**of: Any) -> LocalRoundUnderWay:
        under_way.append(LocalRoundUnderWay(**of))
        return under_way[-1]

    monkeypatch.setattr(beside, "LocalRoundUnderWay", seen)
    whole = simulate(scenario, tmp_path / "whole", device="cpu", threads=1)
    assert not forks, "with one thread, a run must use one core"
    rows: list[Round] = []
    own = simulate(scenario, tmp_path / "beside", device="cpu", threads=2, on_round=rows.append)
    assert len(forks) == 1
    assert bool(under_way) == foretold
    # the rounds of both sessions, including the round in which the run forks, overlap with training
    assert len(under_way) >= foretold * sum(row.phase == "train" for row in rows)
    assert kill.differences(own, whole) == []
    assert len(rows) == len(whole.rounds)


@NEEDS_FORK
@pytest.mark.parametrize("error", [Interrupted(signal.SIGTERM), RuntimeError("a fault")])
def test_a_run_that_forks_is_left_and_resumed(
    error: BaseException, digits: Path, tmp_path: Path, forks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = scenario_of(digits, "")
    leave(scenario, tmp_path / "left", 4, every=3, error=error, threads=2)
    resume(tmp_path / "left", threads=2)
    assert len(forks) == 2
    monkeypatch.setattr(beside, "FORKS_AFTER_S", math.inf)
    whole = simulate(scenario, tmp_path / "whole", device="cpu", threads=2)
    assert kill.differences(tmp_path / "left", whole) == []


@NEEDS_FORK
def test_a_killed_training_process_is_an_error_with_a_remedy(
    digits: Path, tmp_path: Path, forks: list[int]
) -> None:
    scenario, left = scenario_of(digits, ""), tmp_path / "left"

    def kill_training(row: Round) -> None:
        os.kill(forks[-1], signal.SIGKILL)

    with pytest.raises(EdgeflError, match=f"edgefl resume {left}"):
        simulate(scenario, left, device="cpu", threads=2, on_round=kill_training, snapshot_rounds=1)
    resume(left, threads=2)
    whole = simulate(scenario, tmp_path / "whole", device="cpu", threads=1)
    assert kill.differences(left, whole) == []


@NEEDS_FORK
def test_an_error_of_training_has_its_place_and_its_last_model(
    digits: Path, tmp_path: Path, forks: list[int]
) -> None:
    scenario, messages = scenario_of(digits, WILD), []
    for threads in (1, 2):
        out = tmp_path / f"{threads}"
        with pytest.raises(EdgeflError) as raised:
            simulate(scenario, out, device="cpu", threads=threads)
        messages.append(str(raised.value).replace(str(out), "OUT"))
        assert (out / "diverged-cell0.safetensors").exists()
    assert forks
    assert messages[0] == messages[1]
    assert "training diverged in session 1" in messages[0]


def test_a_thread_that_may_hold_a_lock_keeps_training_here(
    digits: Path, tmp_path: Path, forks: list[int]
) -> None:
    over = threading.Event()
    stranger = threading.Thread(target=over.wait)
    stranger.start()
    try:
        simulate(scenario_of(digits, "sessions.count=1"), tmp_path / "run", device="cpu", threads=2)
    finally:
        over.set()
        stranger.join()
    assert not forks
