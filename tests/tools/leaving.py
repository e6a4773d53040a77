"""Stop a run between rounds in this process, resume it, and compare its files with those of an undisturbed run."""

from pathlib import Path

import pytest

from edgefl import Results, Scenario, simulate
from edgefl.engine.records import Round
from edgefl.run.api import resume
from tests.tools import kill


def leave(
    scenario: Scenario,
    out: Path,
    after: int,
    every: int = 1,
    error: BaseException | None = None,
    threads: int | None = None,
) -> None:
    """Interrupt a run by an error after a number of rounds; the run takes a snapshot after every `every` rounds."""
    error, rounds = error or RuntimeError("a fault"), 0

    def count(row: Round) -> None:
        nonlocal rounds
        rounds += 1
        if rounds == after:
            raise error

    with pytest.raises(type(error)):
        simulate(scenario, out, device="cpu", threads=threads, on_round=count, snapshot_rounds=every)


def goes_on(
    scenario: Scenario, folder: Path, after: int, every: int = 1, error: BaseException | None = None
) -> Results:
    """Compare a resumed run, file by file, with an uninterrupted run; return the uninterrupted run."""
    whole, left = simulate(scenario, folder / "whole", device="cpu"), folder / "left"
    leave(scenario, left, after, every, error)
    resume(left)
    assert kill.differences(left, whole) == []
    assert not (left / "snapshots").exists()
    return whole
