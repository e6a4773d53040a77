"""Tell how a run of a study stands, from its directory and the claim on it."""

import shutil
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.run_directory import status
from edgefl.run_directory.reading import about_of
from edgefl.studies import run_locks


class State(StrEnum):
    """The state of a study's run, from `planned` to `completed`."""

    PLANNED = "planned"  # nothing of it is there
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    STALE = "stale"  # its process has ended without a word, or has been silent for long


ENDED = {State.COMPLETED, State.FAILED}
LEFT = {State.INTERRUPTED, State.STALE}


def state_of(directory: Path, run: Path, about: dict[str, Any] | None = None) -> State:
    """Return how a run of a study stands.

    Args:
        directory: of the study.
        run: relative to it.
        about: what its run.json says; None: it is read.
    """
    if about is None:
        about = about_run(directory / run)
    if about.get("status") == State.COMPLETED:
        return State.COMPLETED
    return standing(about, run_locks.held(directory, run))


def states_of(
    directory: Path, runs: Iterable[Path], records: Mapping[Path, dict[str, Any]]
) -> dict[Path, State]:
    """Return how runs of a study stand, by their paths; records: what their run.json say, where there are some."""
    return {run: state_of(directory, run, records.get(run, {})) for run in runs}


def standing(about: dict[str, Any], claimed: bool | None) -> State:
    """Return how a run stands.

    Args:
        about: what its run.json says.
        claimed: whether the process that has claimed it is alive; None: nobody has claimed it.
    """
    recorded = about.get("status")
    if recorded == State.COMPLETED:
        return State.COMPLETED
    if claimed:
        return State.RUNNING
    if recorded in (State.FAILED, State.INTERRUPTED):
        return State(recorded)
    # a dead claim was the younger sign of life; on this machine the process itself is looked up
    if (process := about.get("process")) and status.is_there(process, claimed=claimed is not None):
        return State.RUNNING
    return State.PLANNED if claimed is None and not about else State.STALE


def about_run(path: Path) -> dict[str, Any]:
    """Return what run.json says; nothing where it is missing, was never written, or is damaged."""
    try:
        return about_of(path)
    except EdgeflError:
        return {}


def clear(path: Path) -> None:
    """Remove what is left of a run that starts again."""
    if path.exists():
        shutil.rmtree(path)
