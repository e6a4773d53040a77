"""Test that garbage collection is rarer inside the context, and as usual after it, even after errors."""

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from edgefl.commands.cli import main
from edgefl.engine.records import Round
from edgefl.run.garbage import AT_START, USUAL, WHILE_A_RUN_GOES, seldom_at_start, seldom_while_a_run_goes
from edgefl.run.progress import ProgressDisplay, Reached
from tests.tools.called import code_of


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        ((700, 10, 10), WHILE_A_RUN_GOES),
        (AT_START, WHILE_A_RUN_GOES),
        ((60_000, 10, 10), (60_000, 10, 100)),
        ((0, 10, 10), (0, 10, 10)),
    ],
)
def test_thresholds_inside_and_after(before: tuple[int, int, int], inside: tuple[int, int, int]) -> None:
    gc.set_threshold(*before)
    with seldom_while_a_run_goes():
        assert gc.get_threshold() == inside
    assert gc.get_threshold() == before


def test_an_error_leaves_it_as_it_was() -> None:
    gc.set_threshold(700, 10, 10)
    with pytest.raises(ZeroDivisionError), seldom_while_a_run_goes():
        _ = 1 / 0
    assert gc.get_threshold() == (700, 10, 10)


def test_a_command_looks_seldom_until_a_run_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Collection is rare until a run begins, and then more frequent, as cycles may hold large tensors."""
    with seldom_at_start():
        assert gc.get_threshold() == AT_START
    assert gc.get_threshold() == USUAL
    seen: list[tuple[int, int, int]] = []

    def look(self: ProgressDisplay, label: str, row: Round | Reached) -> None:
        seen.append(gc.get_threshold())

    monkeypatch.setattr(ProgressDisplay, "update", look)
    scenario = tmp_path / "untrained.yaml"
    scenario.write_text(
        "name: untrained\ndevices: {count: 3}\nsessions: {name: schedule, count: 1, rounds: 3}\n"
        "workload: {payload_bits: 1000, steps: 1, batch: 1, flops_per_sample: 10}\n"
    )
    code_of("run", scenario, "--out", tmp_path / "run")
    assert len(seen) == 3
    assert set(seen) == {WHILE_A_RUN_GOES}


def test_a_process_does_not_look_when_it_ends() -> None:
    """At exit all objects are frozen; the handler registered first, and therefore called last, checks this."""
    code = (
        "import atexit, gc; atexit.register(lambda: print('frozen' if gc.get_freeze_count() else 'looks'));"
        f" from {main.__module__} import main; main(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "frozen"
