"""Test parallel tasks: order, reports, failures, dead processes."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from edgefl.studies.workers import Failure, InOrder, side_by_side

# The functions are in a module, as a spawned process has to import them.
WORK = """
import os, signal
from edgefl.errors import EdgeflError

def work(task, report):
    report(f"{task} begins")
    if task == "wrong":
        raise EdgeflError("that is wrong; do it right")
    if task == "bug":
        {}["bug"]
    if task == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "left":
        os._exit(3)
    report(f"{task} ends")
"""


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    (tmp_path / "some_work.py").write_text(WORK)
    monkeypatch.syspath_prepend(str(tmp_path))
    import some_work

    yield some_work.work
    del sys.modules["some_work"]


def carried_out(work: Callable[..., None], tasks: list[str]) -> tuple[list[str], dict[str, Failure | None]]:
    reports: list[str] = []
    ends: dict[str, Failure | None] = {}

    def ended(task: str, failure: Failure | None) -> None:
        assert task not in ends
        ends[task] = failure

    side_by_side(InOrder(tasks), work, 2, reported=lambda task, told: reports.append(told), ended=ended)
    return reports, ends


def test_a_task_that_fails_leaves_the_others_alone(work: Callable[..., None]) -> None:
    tasks = ["wrong", "first", "bug", "killed", "left", "last"]
    reports, ends = carried_out(work, tasks)
    assert set(reports) >= {"first begins", "first ends", "wrong begins", "last begins", "last ends"}
    assert set(ends) == set(tasks)
    assert ends["first"] is None
    assert ends["last"] is None
    assert ends["wrong"] == Failure("that is wrong; do it right")
    bug = ends["bug"]
    assert bug.error == "KeyError: 'bug'"
    assert '{}["bug"]' in bug.trace
    assert ends["killed"] == Failure("its process was killed, possibly for lack of memory")
    assert ends["left"] == Failure("its process ended with exit code 3")


def test_an_error_of_the_caller_ends_the_work(work: Callable[..., None]) -> None:
    ends: list[str] = []

    def ended(task: str, failure: Any) -> None:
        ends.append(task)
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        side_by_side(InOrder(list("abcdef")), work, 1, reported=lambda task, told: None, ended=ended)
    assert ends == ["a"]


def test_workers_do_not_execute_the_script_that_starts_them(tmp_path: Path) -> None:
    (tmp_path / "some_work.py").write_text(WORK)
    script = tmp_path / "script.py"
    script.write_text(
        "print('executed')\n"
        "from edgefl.studies.workers import InOrder, side_by_side\n"
        "from some_work import work\n"
        "side_by_side(InOrder(['a', 'b']), work, 1, reported=print, ended=print)\n"
        "print(__file__)\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    expected = ["executed", *(f"{task} {task} {when}" for task in "ab" for when in ("begins", "ends"))]
    lines = [*expected[:3], "a None", *expected[3:], "b None", str(script)]
    assert (done.stdout.splitlines(), done.stderr) == (lines, "")
