"""When a command's process looks for cycles of objects."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest

from edgefl.commands import garbage
from edgefl.commands.cli import main
from edgefl.engine.records import Round
from edgefl.run.progress import ProgressDisplay


def test_as_often_as_usual_from_the_first_round_on() -> None:
    with garbage.seldom_looked_for():
        assert gc.get_threshold() == (garbage.AT_START, *garbage.USUAL[1:])
        garbage.look_as_usual()
        assert gc.get_threshold() == garbage.USUAL
    with garbage.seldom_looked_for():
        pass
    assert gc.get_threshold() == garbage.USUAL


def test_it_is_as_usual_while_a_run_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Large tensors in cycles would stay, else."""
    seen: list[tuple[int, int, int]] = []

    def look(self: ProgressDisplay, label: str, row: Round | None) -> None:
        seen.append(gc.get_threshold())

    monkeypatch.setattr(ProgressDisplay, "update", look)
    scenario = tmp_path / "untrained.yaml"
    scenario.write_text(
        "name: untrained\ndevices: {count: 3}\nsessions: {name: schedule, count: 1, rounds: 3}\n"
        "workload: {payload_bits: 1000, steps: 1, batch: 1, flops_per_sample: 10}\n"
    )
    with pytest.raises(SystemExit):
        main(["run", str(scenario), "--out", str(tmp_path / "run")])
    assert len(seen) == 3
    assert set(seen) == {garbage.USUAL}


def test_a_process_does_not_look_when_it_ends() -> None:
    """What is registered first is called last, and sees what the command has left."""
    code = (
        "import atexit, gc; atexit.register(lambda: print('frozen' if gc.get_freeze_count() else 'looks'));"
        f" from {main.__module__} import main; main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen"
