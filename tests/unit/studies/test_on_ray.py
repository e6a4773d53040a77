"""What studies need of Ray that needs no cluster; tests/end_to_end/test_ray.py has one."""

import json
import platform
import sys
from pathlib import Path
from typing import Any

import pytest

from edgefl.errors import EdgeflError
from edgefl.run_directory.status import this_process
from edgefl.studies import StudyOptions, plan, run
from edgefl.studies.on_ray import OnRay, _Mailbox, _Reports
from edgefl.studies.run_locks import BEAT_S, RunLocks
from tests.tools.called import code_of

RUN = Path("a", "seed-1")
ELSEWHERE = {"pid": 4, "host": "another", "started": 7}
STUDY = "name: radio\nscenario: radio.yaml\nseeds: [1]\nvariants: {a: {}}\n"
RADIO = """\
name: radio
devices: {count: 4}
sessions: {name: schedule, count: 1, rounds: 1}
workload: {payload_bits: 1000, flops_per_sample: 1}
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "radio.yaml").write_text(RADIO)
    (tmp_path / "study.yaml").write_text(STUDY)
    return tmp_path / "study.yaml"


def claimed(directory: Path, owner: dict[str, Any], number: int = 1) -> Path:
    path = directory / "claims" / RUN / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(owner))
    return path


@pytest.mark.parametrize(
    ("owner", "wait_s"),
    [
        (ELSEWHERE, 1.5 * BEAT_S),  # it may be cut off from us alone: its next beat tells it
        ({"pid": 2**22 + 1, "host": platform.node(), "started": 1}, 0.0),  # gone: no such number
    ],
)
def test_a_claim_is_taken_from_who_is_gone(owner: dict[str, Any], wait_s: float, tmp_path: Path) -> None:
    claimed(tmp_path, owner)
    assert RunLocks(tmp_path).revoke(RUN, owner) == wait_s
    assert RunLocks(tmp_path).held(RUN) is None


def test_another_ones_claim_stays(tmp_path: Path) -> None:
    """The process that is gone had lost its run before: that is why it ended."""
    claimed(tmp_path, this_process(), number=2)
    assert RunLocks(tmp_path).revoke(RUN, ELSEWHERE) == 0.0
    assert RunLocks(tmp_path).held(RUN)
    assert RunLocks(tmp_path / "none").revoke(RUN, ELSEWHERE) == 0.0


def test_without_ray_it_says_how_to_get_it(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EdgeflError, match=r"pip install 'edgefl-cosim\[ray\]'"):
        run(plan(study), study.with_name("out"), StudyOptions(executor=OnRay()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--executor", "slurm"], "--executor slurm: choose local, inline or ray"),
        (["--gpus", "0.5"], "--gpus: is for --executor ray alone"),
        (["--address", "auto", "--executor", "inline"], "--address: is for --executor ray alone"),
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
