"""Test the run directory: its rows, its status, and which process may write it."""

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edgefl.engine.records import Event
from edgefl.errors import EdgeflError
from edgefl.run_directory.interruption import Interrupted, interruptible
from edgefl.run_directory.results import Described, RunDirectory, _RunTables, free_directory, fresh_directory
from edgefl.run_directory.status import SILENT_S, RunStatus, is_there, resumable, this_process
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import Prepared
from edgefl.scenario.scenario import Scenario
from tests.refusals import refused_at
from tests.tables import sections

SCENARIO = sections("""
    name=rows; devices.count=5; sessions={name: schedule, count: 1, rounds: 1}
    workload={payload_bits: 1, flops_per_sample: 1}
""")


def described() -> Described:
    return Prepared(Scenario.model_validate(SCENARIO), Loaded(download=False)).described


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path, described(), {})


def test_columns_are_written_like_rows(run: RunDirectory) -> None:
    common = {"time_s": 7.2, "event": "handover", "session": None, "interruption_s": 0.05}
    columns = {
        "device": [3, 4],
        "cell": [1, 1],
        "stay_s": [0.1 + 0.2, 1234.56789012345],
        "detail": ["ping_pong", ""],
    }
    for place in (0, 1):
        run.tables[""].write(Event(**common, **{name: values[place] for name, values in columns.items()}))
    run.tables[""].write_columns(Event, **common, **{name: np.array(of) for name, of in columns.items()})
    run.flush()
    _, *lines = (run.path / "events.csv").read_text().splitlines()
    assert lines[:2] == ["7.2,handover,3,,1,,0.3,0.05,ping_pong", "7.2,handover,4,,1,,1234.567890123,0.05,"]
    assert lines[2:] == lines[:2]


def test_an_unknown_and_a_missing_column_are_refused(run: RunDirectory) -> None:
    with pytest.raises(KeyError, match="Event has no colour"):
        run.tables[""].write_columns(Event, colour="red")
    with pytest.raises(TypeError, match="time_s"):
        run.tables[""].write_columns(Event, event="handover", device=np.array([3]), session=None)


def about(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / "run.json").read_text())
    return found


def test_a_run_under_way_names_its_process(run: RunDirectory) -> None:
    found = about(run.path)
    assert found["status"] == "running"
    assert found["process"]["pid"] == os.getpid()
    with refused_at("", f"process {os.getpid()}"):
        resumable(run.path)


def test_a_complete_run(run: RunDirectory) -> None:
    with run:
        run.complete(wall_s=1.5, notes=["none"])
    found = about(run.path)
    assert (found["status"], found["wall_s"], found["notes"]) == ("completed", 1.5, ["none"])
    assert "process" not in found
    with refused_at("", run.path):
        RunDirectory(run.path, described(), {}, resume=True)


@pytest.mark.parametrize("raised", [KeyboardInterrupt(), Interrupted(signal.SIGTERM)])
def test_an_interrupted_run_says_where_it_is(run: RunDirectory, raised: BaseException) -> None:
    with pytest.raises(Interrupted) as error, run:
        raise raised
    assert error.value.path == run.path
    assert error.value.exit_code == 128 + (signal.SIGTERM if raised.args else signal.SIGINT)
    assert about(run.path)["status"] == "interrupted"


def test_a_second_signal_waits_for_a_runs_end(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(self: RunStatus) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        written(self)

    written = RunStatus._write
    monkeypatch.setattr(RunStatus, "_write", write)
    with pytest.raises(Interrupted) as error, interruptible(), run:
        os.kill(os.getpid(), signal.SIGINT)
    assert error.value.args == (signal.SIGINT, run.path)
    assert about(run.path)["status"] == "interrupted"


def test_a_signal_waits_for_a_failed_runs_end(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    close = run.tables[""]._tables[Event].close

    def slowly() -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        close()

    monkeypatch.setattr(run.tables[""]._tables[Event], "close", slowly)
    with pytest.raises(Interrupted), interruptible(), run:
        raise EdgeflError("nobody came")
    assert about(run.path)["status"] == "failed"
    assert about(run.path)["error"] == "nobody came"


def test_a_run_interrupted_at_its_start_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def table(self: _RunTables, row_type: type) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        monkeypatch.undo()
        return self._table(row_type)

    monkeypatch.setattr(_RunTables, "_table", table)
    with pytest.raises(Interrupted) as error, interruptible():
        RunDirectory(tmp_path, described(), {})
    assert error.value.args == (signal.SIGTERM, tmp_path)
    assert about(tmp_path)["status"] == "interrupted"
    assert (tmp_path / "scenario.yaml").exists()
    assert (tmp_path / "rounds.csv").exists()


def test_a_failed_run_can_be_resumed(run: RunDirectory) -> None:
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError("no room")
    assert about(run.path)["error"] == "no room"
    with RunDirectory(run.path, described(), {"device": "here"}, resume=True) as again:
        found = about(run.path)
        assert (found["status"], found["resumed"], found["device"]) == ("running", 1, "here")
        assert "error" not in found
        again.complete(wall_s=1.0)
    assert about(run.path)["wall_s"] >= 1.0


def left_by(path: Path, **process: Any) -> None:
    found = about(path)
    found["process"] |= process
    (path / "run.json").write_text(json.dumps(found))


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="seconds")


def test_a_process_that_is_gone(run: RunDirectory) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    left_by(run.path, pid=gone.pid, started=None)
    gone.wait()
    resumable(run.path)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux states a process's start time")
def test_a_process_number_that_was_given_to_another(run: RunDirectory) -> None:
    left_by(run.path, started=1)
    resumable(run.path)


def test_a_process_on_another_machine(run: RunDirectory) -> None:
    left_by(run.path, host=platform.node() + "-2", heartbeat=ago(SILENT_S / 2))
    with refused_at("", "180"):
        resumable(run.path)
    left_by(run.path, host=platform.node() + "-2", heartbeat=ago(-2 * SILENT_S))  # one of the clocks is wrong
    with refused_at("", "ahead of this clock"):
        resumable(run.path)
    left_by(run.path, heartbeat=ago(SILENT_S + 1))
    resumable(run.path)


def test_a_dead_claim_leaves_no_process_of_another_machine(run: RunDirectory) -> None:
    process = {**this_process(), "host": platform.node() + "-2"}
    for claimed in (True, False):
        # if a claim is dead, the heartbeat has stopped, whatever the clocks show
        assert is_there({**process, "heartbeat": ago(-1.0)}, claimed=claimed) is not claimed


@pytest.mark.parametrize("content", [None, "", '{"status"'])
def test_no_run_directory(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with refused_at("", "not a run directory" if content is None else "stopped while it was starting"):
        resumable(tmp_path)


def claim(path: Path, start: Any) -> str:
    start.wait()
    try:
        fresh_directory(path)
    except EdgeflError:
        return "refused"
    return "won"


def test_of_two_processes_one_gets_the_directory(tmp_path: Path) -> None:
    context = get_context("fork")
    with context.Manager() as manager, context.Pool(2) as pool:
        for number in range(30):
            start = manager.Barrier(2)
            wins = pool.starmap(claim, [(tmp_path / str(number), start)] * 2, chunksize=1)
            assert sorted(wins) == ["refused", "won"]


def test_a_free_directory_is_the_callers_own(tmp_path: Path) -> None:
    assert [free_directory(tmp_path, "a").name for _ in range(3)] == ["a", "a-2", "a-3"]


@pytest.mark.parametrize("status", ["interrupted", "completed", "failed"])
def test_a_directory_in_use_names_its_remedy(run: RunDirectory, status: str) -> None:
    with refused_at("", f"process {os.getpid()} is running it"):
        resumable(run.path)
    with refused_at("", "is not empty; choose another --out"):
        fresh_directory(run.path)
    about = json.loads((run.path / "run.json").read_text())
    (run.path / "run.json").write_text(json.dumps({**about, "status": status}))
    remedies = {
        "interrupted": f"; continue its run with `edgefl resume {run.path}`, choose another --out, or delete it",
        "completed": "; choose another --out, or delete it",
        "failed": "; choose another --out, or delete it, or, unless its scenario made the run fail, continue its run",
    }
    with refused_at("", f"is not empty{remedies[status]}"):
        fresh_directory(run.path)


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with refused_at("", tmp_path / "file"):
        fresh_directory(tmp_path / "file")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 64 kB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("this user may not mount a small disk")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk_is_an_error_and_the_run_failed(small_disk: Path) -> None:
    run = RunDirectory(small_disk / "run", described(), {})
    many = {"time_s": 1.0, "event": "handover", "device": list(range(100)), "session": None}
    with refused_at("", "events.csv", "No space left on device"), run:
        for _ in range(100):
            run.tables[""].write_columns(Event, **many)
            run.flush()
    found = about(run.path)
    assert found["status"] == "failed"
    assert "No space left on device" in found["error"]


def test_a_long_error_fits_into_what_is_there(run: RunDirectory, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("edgefl.run_directory.status.replace", full)
    size = (run.path / "run.json").stat().st_size
    with pytest.raises(ZeroDivisionError), run:
        raise ZeroDivisionError("x" * 2 * size)
    assert about(run.path)["status"] == "failed"
    assert (run.path / "run.json").stat().st_size == size


@pytest.mark.parametrize("replaced", [False, True])
def test_a_folder_that_is_moved_ends_the_run_and_is_not_made_again(replaced: bool, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run", described(), {})
    moved = run.path.rename(tmp_path / "moved")
    if replaced:  # the directory now has another process's run
        run.path.mkdir()
        (run.path / "run.json").write_text((moved / "run.json").read_text())
        left_by(run.path, host="elsewhere", pid=1)
    before = sorted(run.path.rglob("*"))
    for call in (run.flush, run.complete):
        with refused_at("", "moved, renamed or deleted"), run:
            call()
    assert run.path.exists() == replaced
    assert sorted(run.path.rglob("*")) == before
    assert about(moved)["status"] == "running"
