"""Test that claims of runs are exclusive, end with their process, and are taken over only once."""

import json
import os
import platform
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from edgefl.studies import run_locks
from edgefl.studies.run_locks import STALE_S

RUN = Path("a", "seed-1")
MANY, ROUNDS = 4, 25
# Tries to lock each run at the same time as other processes, and prints which runs it got.
RACE = """
import sys, time
from pathlib import Path
from edgefl.studies.run_locks import take
start = float(sys.argv[2])
time.sleep(max(0.0, start - time.time() - 0.05))
while time.time() < start: pass
print(*[n for n in range(int(sys.argv[3])) if take(Path(sys.argv[1]), Path("run", str(n)))])
time.sleep(3)
"""


def another(directory: Path, number: int = 1, *, host: str = "elsewhere", age_s: float = 0.0) -> Path:
    """Write another process's claim of RUN."""
    path = directory / "claims" / RUN / f"{number}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"pid": os.getpid(), "host": host, "started": 1}))
    os.utime(path, (time.time() - age_s,) * 2)
    return path


def test_a_run_is_claimed_once_and_leaves_no_file(tmp_path: Path) -> None:
    assert run_locks.held(tmp_path, RUN) is None
    with run_locks.take(tmp_path, RUN):
        assert run_locks.held(tmp_path, RUN)
        assert run_locks.take(tmp_path, RUN) is None
    assert not (tmp_path / "claims").exists()


def test_of_processes_that_claim_at_the_same_time_one_wins(tmp_path: Path) -> None:
    start = time.time() + 1.5
    command = [sys.executable, "-c", RACE, str(tmp_path), str(start), str(ROUNDS)]
    for number in range(ROUNDS):  # all runs have the claim of a dead process
        path = tmp_path / "claims" / "run" / str(number) / "1.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({"pid": os.getpid(), "host": platform.node(), "started": 1}))
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(MANY)]
    won = [word for racer in racers for word in racer.communicate()[0].split()]
    assert sorted(map(int, won)) == list(range(ROUNDS))


def test_a_process_of_this_machine_that_is_gone_holds_nothing(tmp_path: Path) -> None:
    another(tmp_path, host=platform.node())  # this process's id with a different start time
    assert run_locks.held(tmp_path, RUN) is False
    assert run_locks.take(tmp_path, RUN)._path.name == "2.json"


@pytest.mark.parametrize(("age_s", "held"), [(0.0, True), (STALE_S + 1, False), (-STALE_S - 1, False)])
def test_one_of_another_machine_is_believed_while_it_beats(age_s: float, held: bool, tmp_path: Path) -> None:
    another(tmp_path, age_s=age_s)
    assert run_locks.held(tmp_path, RUN) is held


@pytest.mark.parametrize("age_s", [STALE_S + 1, -1e9])
@pytest.mark.parametrize("lives", [True, False])
def test_a_wrong_clock_neither_takes_a_run_nor_keeps_it_for_ever(
    age_s: float, lives: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_locks, "BEAT_S", 0.2)
    theirs = another(tmp_path, age_s=age_s)
    beats = threading.Timer(0.1, os.utime, (theirs, (1.0, time.time() - age_s + 0.2)))
    if lives:  # the other process sends another heartbeat, by its wrong clock
        beats.start()
    claim = run_locks.take(tmp_path, RUN)
    assert (claim is None) == lives
    assert theirs.exists()


def test_a_copy_of_old_claims_is_nobodys(tmp_path: Path) -> None:
    another(tmp_path / "there", age_s=STALE_S + 1)
    shutil.copytree(tmp_path / "there", tmp_path / "here")  # preserves modification times, as rsync -a does
    assert run_locks.held(tmp_path / "here", RUN) is False


def test_a_claim_beats_and_notes_that_it_was_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_locks, "BEAT_S", 0.01)
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)
    with run_locks.take(tmp_path, RUN) as claim:
        os.utime(claim._path, (1.0, 1.0))
        deadline = time.monotonic() + 10
        while claim._path.stat().st_mtime == 1.0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert claim._path.stat().st_mtime > 1.0
        assert not claim.lost()
        theirs = another(tmp_path, 2)
        while not ended and time.monotonic() < deadline:
            time.sleep(0.01)
        assert ended[0] == run_locks.TAKEN_OVER
    assert theirs.exists(), "the other process's claim stays"
