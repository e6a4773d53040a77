"""Claim one run of a study in this process, and begin, resume or restart the run."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.plan import prepare
from edgefl.run.resuming import can_go_on
from edgefl.run.simulation import carry_out
from edgefl.run.study_membership import TrainingReuse
from edgefl.run_directory import status
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.results import RunDirectory
from edgefl.run_directory.snapshot import DEFAULT, Every
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import Prepared
from edgefl.studies import run_locks
from edgefl.studies.directory import FILE
from edgefl.studies.planning import Run
from edgefl.studies.states import LEFT, State, about_run, clear, standing
from edgefl.studies.workers import Failure

ELSEWHERE = "elsewhere"  # report of a run that another process is executing
_LOADED = Loaded(download=True)  # data stay loaded between runs, since the runs of a process often share them


@dataclass(frozen=True)
class RunTask:
    """A run to be done in a study's directory."""

    directory: Path
    run: Run
    device: str
    sharing: TrainingReuse
    every: Every = DEFAULT
    threads: int | None = 1

    @property
    def path(self) -> Path:
        """The run directory."""
        return self.directory / self.run.path


def work(task: RunTask, report: Callable[[Round | str], None]) -> None:
    """Execute a run unless another process is doing so, and report each round."""
    claim = run_locks.take(task.directory, task.run.path)
    if claim is None:
        report(ELSEWHERE)
        return
    with claim:
        state = standing(about_run(task.path), claimed=False)
        if state is State.COMPLETED:  # another process has completed the run before the claim
            return
        if state is State.RUNNING:
            report(ELSEWHERE)
            return
        try:
            _begin(task, state, report)
        except Exception as error:
            leave_a_trace(task, Failure.of(error))
            raise


def leave_a_trace(task: RunTask, failure: Failure) -> None:
    """Make the directory of a run that failed before its directory existed, so that a comparison can name the run.

    If the study's folder has been moved, no directory is made, since it would be in a new, otherwise empty folder.
    """
    prepared, about = Prepared(task.run.scenario, _LOADED), {"notes": [], **asdict(task.run.member)}
    if not (task.path / status.FILE).exists() and (task.directory / FILE).exists():
        with suppress(EdgeflError):  # the data may be unavailable
            about["identity"] = prepared.identity.written()
        with suppress(EdgeflError):
            RunDirectory(task.path, prepared.described, about).fail(failure.error)


def _begin(task: RunTask, state: State, report: Callable[[Round | str], None]) -> None:
    goes_on = False
    if state in {*LEFT, State.FAILED}:
        goes_on = can_go_on(task.path, task.run.scenario)
        status.give_up(task.path, damaged=True) if goes_on else clear(task.path)
    with interruptible():
        carry_out(
            prepare(task.run.scenario, device=task.device, threads=task.threads, load=_LOADED),
            task.path,
            on_round=report,
            member=task.run.member,
            every=task.every,
            resumes=goes_on,
            sharing=task.sharing,
        )
