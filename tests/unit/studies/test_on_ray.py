"""Test the parts of studies on Ray that need no cluster; tests/end_to_end/test_ray.py uses a cluster."""

import json
import platform
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgefl.errors import EdgeflError
from edgefl.run_directory.status import this_process
from edgefl.studies import StudyOptions, plan, run, run_locks
from edgefl.studies.on_ray import OnRay, _connected, _Mailbox, _Reports
from edgefl.studies.run_locks import BEAT_S
from tests.refusals import refused_at
from tests.tools.called import code_of
from tests.tools.forked import loaded_after
from tests.unit.studies.asked import written

RUN = Path("a", "seed-1")
ELSEWHERE = {"pid": 4, "host": "another", "started": 7}
STUDY = "name: radio\nscenario: radio.yaml\nseeds: [1]\nvariants: {a: {}}\n"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return written(tmp_path, STUDY)


def claimed(directory: Path, owner: dict[str, Any], number: int = 1) -> Path:
    path = directory / "claims" / RUN / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(owner))
    return path


@pytest.mark.parametrize(
    ("owner", "wait_s"),
    [
        (ELSEWHERE, 1.5 * BEAT_S),  # we may only have lost the connection, so wait for a heartbeat
        ({"pid": 2**22 + 1, "host": platform.node(), "started": 1}, 0.0),  # no process has this id
    ],
)
def test_a_claim_is_taken_from_who_is_gone(owner: dict[str, Any], wait_s: float, tmp_path: Path) -> None:
    claimed(tmp_path, owner)
    assert run_locks.revoke(tmp_path, RUN, owner) == wait_s
    assert run_locks.held(tmp_path, RUN) is None


def test_another_ones_claim_stays(tmp_path: Path) -> None:
    """Another process's claim stays, as the process that ended had already lost its run to this other process."""
    claimed(tmp_path, this_process(), number=2)
    assert run_locks.revoke(tmp_path, RUN, ELSEWHERE) == 0.0
    assert run_locks.held(tmp_path, RUN)
    assert run_locks.revoke(tmp_path / "none", RUN, ELSEWHERE) == 0.0


def test_without_ray_it_says_how_to_get_it(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with refused_at("", "pip install 'edgefl-cosim[ray]'"):
        run(plan(study), study.with_name("out"), StudyOptions(executor=OnRay()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "slurm"], "--executor slurm: choose local, inline or ray"),
        (["--gpus", "0.5"], "--gpus: needs --executor ray"),
        (["--address", "auto", "--executor", "inline"], "--address: needs --executor ray"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    options: list[str], message: str, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert code_of("study", study, *options, "--out", study.with_name("out")) == 2
    assert message in capsys.readouterr().err
    assert not study.with_name("out").exists()


def test_reports_come_in_order_and_together(monkeypatch: pytest.MonkeyPatch) -> None:
    box = _Mailbox()

    class Put:
        remote = staticmethod(box.put)

    class Handle:
        put = Put

    now = 0.0
    monkeypatch.setattr("edgefl.studies.on_ray.time.monotonic", lambda: now)
    reports = _Reports(Handle, 5)
    reports("first")
    assert box.empty() == []
    now = 1.0
    reports("second")
    reports("elsewhere")
    reports("third")
    reports.send()
    assert box.empty() == [(5, ["first", "second"]), (5, ["third"])]
    assert reports.elsewhere


class RayError(Exception):
    """A stand-in for the base class of Ray's errors."""


class ObjectStoreFullError(RayError):
    """A stand-in for Ray's error."""


RAY = SimpleNamespace(
    is_initialized=lambda: True,
    exceptions=SimpleNamespace(RayError=RayError, ObjectStoreFullError=ObjectStoreFullError),
)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ObjectStoreFullError("full\nand more"),
            r"is full \(full\); start its nodes with a larger --object-store",
        ),
        (RayError("the owner is gone"), r"has failed \(RayError: the owner is gone\); see `ray status`"),
        (RayError(), r"has failed \(RayError: \)"),
    ],
)
def test_errors_of_ray_have_a_remedy(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", RAY)
    with pytest.raises(EdgeflError, match=said + ".*the same command continues"), _connected("auto"):
        raise error


@pytest.mark.parametrize("error", [EdgeflError("bad scenario"), KeyboardInterrupt(), ValueError("mine")])
def test_other_errors_pass(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", RAY)
    with pytest.raises(type(error)) as told, _connected("auto"):
        raise error
    assert told.value is error


def test_ray_is_loaded_only_if_it_is_asked_for() -> None:
    modules = "edgefl.commands.cli, edgefl.run.simulation, edgefl.studies.on_ray"
    assert loaded_after(f"import {modules}", {"ray"}) == set()
