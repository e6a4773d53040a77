"""Test the parts of the kill check; the whole check, `make kill`, takes minutes."""

import json
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE, Popen

import pytest

from tests.tools import kill

KILLS, DURATION_S = 50, 8.0


def test_instants_fall_into_every_part_of_a_run() -> None:
    drawn = kill.instants(DURATION_S, KILLS, seed=1)
    assert [int(instant_s / DURATION_S * KILLS) for instant_s in drawn] == list(range(KILLS))
    assert drawn == kill.instants(DURATION_S, KILLS, seed=1)
    assert drawn != kill.instants(DURATION_S, KILLS, seed=2)


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Write two runs that differ in wall-clock times only."""
    for name, wall_s in (("a", 1.0), ("b", 2.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"status": "completed", "wall_s": wall_s}))
        (tmp_path / name / "rounds.csv").write_text("round\n1\n")
    return tmp_path / "a", tmp_path / "b"


def test_the_wall_clock_is_not_compared(two: tuple[Path, Path]) -> None:
    assert kill.differences(*two) == []


def test_every_byte_else_is(two: tuple[Path, Path]) -> None:
    (two[0] / "rounds.csv").write_text("round\n2\n")
    (two[1] / "events.csv").touch()
    (two[1] / "run.json").write_text(json.dumps({"status": "failed"}))
    assert kill.differences(*two) == ["events.csv", "rounds.csv", "run.json"]


@pytest.mark.parametrize(("seconds", "killed"), [(0.2, True), (60.0, False)])
def test_killing(seconds: float, killed: bool) -> None:
    sleep = Popen(
        [sys.executable, "-c", f"import time; time.sleep({60 * killed})"], stdout=DEVNULL, stderr=PIPE
    )
    assert kill.killed_after(sleep, seconds) is killed
    assert sleep.returncode == (-9 if killed else 0)


def test_defaults_are_there() -> None:
    assert all(path.is_file() for path in kill.defaults())
