"""Test that signals end a run between two steps, and that files are complete or absent."""

import os
import signal
from pathlib import Path

import pytest

from edgefl.run_directory import files
from edgefl.run_directory.interruption import Interrupted, held, interruptible


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_interrupts(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    if before is signal.SIG_IGN:
        pytest.skip("these tests run below nohup, which ignores this signal")
    with pytest.raises(Interrupted) as error, interruptible():
        os.kill(os.getpid(), number)
    assert error.value.exit_code == 128 + number
    assert signal.getsignal(number) == before


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible():
            os.kill(os.getpid(), signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)


def twice(times: int, done: list[str]) -> None:
    with interruptible(), held():
        with held():
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
            done.append("inner")
        done.append("outer")


@pytest.mark.parametrize(("times", "done"), [(1, ["inner", "outer"]), (2, [])])
def test_a_signal_waits_and_a_second_one_does_not(times: int, done: list[str]) -> None:
    found: list[str] = []
    with pytest.raises(Interrupted):
        twice(times, found)
    assert found == done
    with interruptible(), held():
        pass  # no file remains


def test_pickle_can_rebuild_it() -> None:
    error = Interrupted(signal.SIGTERM)
    assert type(error)(*error.args).exit_code == 143


def test_it_says_how_to_go_on() -> None:
    """A Python script that Ctrl-C ends prints it as its last line."""
    assert str(Interrupted()) == "SIGINT ended the run"
    message = (
        "SIGTERM ended the run; continue it with edgefl.resume('runs/a'), and the run's own learner, if any"
    )
    assert str(Interrupted(signal.SIGTERM, Path("runs/a"))) == message


def test_two_that_write_a_file_at_a_time_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, move = tmp_path / "study.yaml", Path.replace

    def replace(draft: Path, target: Path) -> Path:
        monkeypatch.setattr(Path, "replace", move)
        files.replace(path, "theirs")  # after our draft is written, before it is renamed
        return move(draft, target)

    monkeypatch.setattr(Path, "replace", replace)
    files.replace(path, "ours")
    assert path.read_text() == "ours"
    assert list(tmp_path.iterdir()) == [path]


def test_what_could_not_be_written_leaves_no_draft(tmp_path: Path) -> None:
    (tmp_path / "run.json").mkdir()
    with pytest.raises(OSError, match=r"run\.json"):
        files.replace(tmp_path / "run.json", "text")
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]
