"""What a run that is spread needs that needs no cluster; tests/end_to_end/test_training_on_ray.py has one."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from edgefl.errors import EdgeflError
from edgefl.learning.local.chunk_trainers import Threads
from edgefl.run.simulation import simulate
from edgefl.scenario.scenario import load
from tests.tools.called import code_of
from tests.tools.forked import loaded_after

LEARNING = "learning: {dataset: digits, model: logistic}\n"
WORKLOAD = "workload: {payload_bits: 1000, flops_per_sample: 1}\n"


def scenario(folder: Path, trains: str = LEARNING) -> Path:
    path = folder / "small.yaml"
    path.write_text(
        "name: small\ndevices: {count: 4}\nsessions: {name: schedule, count: 1, rounds: 1}\n" + trains
    )
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "slurm"], "--executor slurm: choose local or ray"),
        (["--workers", "2"], "--workers: is for --executor ray alone"),
        (["--address", "auto", "--executor", "local"], "--address: is for --executor ray alone"),
    ],
)
@pytest.mark.parametrize("command", ["run", "resume"])
def test_options_that_do_not_fit_are_refused(
    command: str, options: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = [str(scenario(tmp_path)), "--out", str(tmp_path / "out")]
    if command == "resume":
        with pytest.raises(EdgeflError, match="stop"):
            simulate(load(where[0]), tmp_path / "left", on_round=stop)
        where = [str(tmp_path / "left")]
    assert code_of(command, *where, *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def stop(row: Any) -> None:
    raise EdgeflError("stop")


def test_without_ray_it_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    assert code_of("run", scenario(tmp_path), "--executor", "ray", "--out", tmp_path / "out") == 2
    assert "pip install 'edgefl-cosim[ray]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_run_that_trains_nothing_has_nothing_to_spread(tmp_path: Path) -> None:
    with pytest.raises(EdgeflError, match=r"nothing to spread: .*leave --executor out"):
        simulate(load(scenario(tmp_path, WORKLOAD)), tmp_path / "out", trainers=Threads(1))
    assert not (tmp_path / "out").exists()


def test_gpus_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgefl.learners.building.torch_device", lambda name: torch.device("cuda"))
    with pytest.raises(EdgeflError, match="not GPUs: add --device cpu"):
        simulate(load(scenario(tmp_path)), tmp_path / "out", trainers=Threads(1))
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_ray_is_loaded_only_if_it_is_asked_for() -> None:
    modules = "edgefl.commands.cli, edgefl.run.simulation, edgefl.run.training_on_ray"
    assert loaded_after(f"import {modules}", {"ray"}) == set()
