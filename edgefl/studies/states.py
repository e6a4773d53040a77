"""Return the state of a study's run, from the run's directory and the claim on the run."""

import shutil
from enum import StrEnum
from pathlib import Path
from typing import Any

from edgefl.errors import EdgeflError
from edgefl.run_directory import status
from edgefl.run_directory.reading import about_of
from edgefl.studies import run_locks


class State(StrEnum):
    """The state of a study's run, from `planned` to `completed`."""

    PLANNED = "planned"  # no files have been written yet
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    INTERRUPTED = "interrupted"
    STALE = "stale"  # the run's process died, or has sent no heartbeat for a long time


ENDED = {State.COMPLETED, State.FAILED}
LEFT = {State.INTERRUPTED, State.STALE}


def state_of(directory: Path, run: Path, about: dict[str, Any] | None = None) -> State:
    """Return the state of a run of a study.

    Args:
        directory: the study's directory.
        run: the run's directory, relative to the study's directory.
        about: contents of the run's run.json; if None, the file is read.
    """
    if about is None:
        about = about_run(directory / run)
    if about.get("status") == State.COMPLETED:
        return State.COMPLETED
    return standing(about, run_locks.held(directory, run))


def standing(about: dict[str, Any], claimed: bool | None) -> State:
    """Return the state of a run from its run.json and its claim.

    Args:
        about: contents of the run's run.json.
        claimed: whether the process that claimed the run is alive; None if no process has claimed the run.
    """
    recorded = about.get("status")
    if recorded == State.COMPLETED:
        return State.COMPLETED
    if claimed:
        return State.RUNNING
    if recorded in (State.FAILED, State.INTERRUPTED):
        return State(recorded)
    # an expired claim outweighs run.json's heartbeat; for a process on this machine, the process table decides
    if (process := about.get("process")) and status.is_there(process, claimed=claimed is not None):
        return State.RUNNING
    return State.PLANNED if claimed is None and not about else State.STALE


def about_run(path: Path) -> dict[str, Any]:
    """Return the contents of run.json; empty if it is missing or damaged."""
    try:
        return about_of(path)
    except EdgeflError:
        return {}


def clear(path: Path) -> None:
    """Remove the files of a run that starts again from round 1."""
    if path.exists():
        shutil.rmtree(path)
