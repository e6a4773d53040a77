"""Supply the runs of a study to processes as tasks, and record how they end."""

import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run_directory import status
from edgefl.run_directory.journal import LENT
from edgefl.studies import run_locks
from edgefl.studies.directory import FILE
from edgefl.studies.one_run import ELSEWHERE, RunTask, leave_a_trace, work
from edgefl.studies.options import Failed, IncompleteStudy, StudyOptions
from edgefl.studies.planning import Run
from edgefl.studies.states import ENDED, State, state_of
from edgefl.studies.training_reuse import ReusePlan, lent_after
from edgefl.studies.workers import LOOK_AGAIN_S, Failure


class RunScheduler:
    """The remaining runs in order, as a supply of tasks (see `edgefl.studies.workers.Supply`).

    Args:
        directory: the study's directory.
        runs: the runs that this process may execute.
        reuse: path of each run of the study -> the training that the run reuses and keeps for other runs.
        states: path of each run -> the run's current state.

    Attributes:
        cores: number of cores for a run that begins alone because all other runs wait for it. to_do: runs
            waiting to be started. completed: runs that were complete before this process began. new: runs not yet
            begun.
    """

    def __init__(
        self,
        directory: Path,
        runs: Sequence[Run],
        reuse: Mapping[Path, ReusePlan],
        states: Mapping[Path, State],
        options: StudyOptions,
    ) -> None:
        self._directory, self._reuse, self._options = directory, reuse, options
        self.cores = 1
        self._active: set[Path] = set()
        self._tried: set[Path] = set()
        self._reported_elsewhere: set[Path] = set()
        self._elsewhere = 0  # runs that other processes were executing at the last check
        self._failures: list[Failed] = []  # failures in this process; self._failed: earlier failures
        self.completed, self._failed, self.new = (
            [run for run in runs if states[run.path] is state]
            for state in (State.COMPLETED, State.FAILED, State.PLANNED)
        )
        if options.retry:
            self._failed = []
        left = {run.path for run in (*self.completed, *self._failed)}
        places = _places(runs, reuse)
        self.to_do = sorted((run for run in runs if run.path not in left), key=lambda run: places[run.path])

    def take(self, threads: int | None = 1) -> RunTask | None:
        """Return a run to begin now, or None if no run waits or if all waiting runs need unfinished training."""
        _require_there(self._directory)
        run = self._next()
        if run is None:
            return None
        self.to_do.remove(run)
        self._active.add(run.path)
        self._tried.add(run.path)
        if threads == 1 and len(self._active) == 1 and self._next() is None:
            threads = self.cores
        sharing = self._reuse[run.path].in_directory(self._directory)
        return RunTask(self._directory, run, self._options.device, sharing, self._options.every, threads)

    def _next(self) -> Run | None:
        self._elsewhere = 0
        under_way: dict[Path, bool] = {}
        for run in list(self.to_do):
            reuse = self._reuse[run.path]
            lender = reuse.lender
            if lender is not None:
                if lender not in under_way:
                    under_way[lender] = self._is_under_way(lender)
                if under_way[lender] and (
                    reuse.whole or lent_after(self._directory / lender) < reuse.snapshots
                ):
                    continue
            state = state_of(self._directory, run.path)
            may_fail_again = self._options.retry and run.path not in self._tried
            if state is State.RUNNING:
                self._elsewhere += 1
            elif state is State.COMPLETED:
                self.to_do.remove(run)  # another process has completed the run
            elif state is State.FAILED and not may_fail_again:
                self.to_do.remove(run)
                self._failed.append(run)
            else:
                return run
        return None

    def _is_under_way(self, lender: Path) -> bool:
        """Return whether a run is queued or under way here, or under way in another process."""
        if lender in self._active or any(run.path == lender for run in self.to_do):
            return True
        return state_of(self._directory, lender) is State.RUNNING

    def waits(self) -> bool:
        """Return whether a run waits for training by another process, or for that process to end."""
        return len(self.to_do) > (0 if self._options.wait else self._elsewhere)

    def reported(self, task: RunTask, report: Round | str) -> None:
        """Report a run's finished round, or record that another process has claimed the run."""
        if isinstance(report, Round):
            self._options.progress(task.run.label, report)
        elif report == ELSEWHERE:
            self._reported_elsewhere.add(task.run.path)

    def ended(self, task: RunTask, failure: Failure | None) -> None:
        """Record the end of a run."""
        run = task.run
        if run.path in self._reported_elsewhere:
            self._reported_elsewhere.discard(run.path)
            self._put_back(run)
            return
        _require_there(self._directory)
        self._active.discard(run.path)
        family = self._reuse[run.path].family
        # check once per family, since states are read from files
        if not any(self._reuse[run.path].family is family for run in self.to_do):
            self._tidy(family)
        if failure is None:
            self._options.progress(run.label, task.path)
            return
        # the run may have failed because another process holds its lock
        if not run_locks.held(self._directory, run.path):
            leave_a_trace(task, failure)  # a killed process leaves no record of its failure
        told = any(one.error == failure.error for one in self._failures)
        trace = "" if told else failure.trace
        self._failures.append(Failed(run.label, task.path, failure.error, trace))
        self._options.failed(self._failures[-1])
        if self._options.fail_fast:
            begun = "; the study has ended at this failure, and the same command continues it"
            raise IncompleteStudy(f"{self._failures[0]}{begun}", self._directory, self._failures)

    def lost(self, task: RunTask) -> None:
        """Record that a run's process died silently; another process resumes the run."""
        if not run_locks.held(self._directory, task.run.path):  # another process may have taken over the run
            with suppress(EdgeflError):  # raised if there is no run.json yet
                status.give_up(task.path)
        self._put_back(task.run)

    def _put_back(self, run: Run) -> None:
        self._active.discard(run.path)
        self._tried.discard(run.path)
        self.to_do.append(run)

    def tidy(self) -> None:
        """Remove snapshots kept for other runs, which a killed study leaves behind, once all runs have ended."""
        for family in {id(reuse.family): reuse.family for reuse in self._reuse.values()}.values():
            if any((self._directory / path / LENT).exists() for path in family):
                self._tidy(family)

    def _tidy(self, family: Sequence[Path]) -> None:
        if len(family) > 1 and all(state_of(self._directory, path) in ENDED for path in family):
            for path in family:
                shutil.rmtree(self._directory / path / LENT, ignore_errors=True)

    def here(self) -> None:
        """Execute a study's runs one after another in this process."""
        while True:
            task = self.take(threads=None)
            if task is None:
                if not self.waits():
                    return
                time.sleep(LOOK_AGAIN_S)
                continue
            failure = None
            try:
                work(task, partial(self.reported, task))
            except Exception as error:
                failure = Failure.of(error)
            self.ended(task, failure)

    def conclude(self, runs: Sequence[Run]) -> None:
        """Raise if runs of the study have failed, now or in an earlier call.

        Raises:
            IncompleteStudy: runs have failed; the message names them.
        """
        earlier = [
            Failed(run.label, path, f"failed earlier ({path / status.FILE} says why)", earlier=True)
            for run in self._failed
            for path in [self._directory / run.path]
        ]
        failures = [*earlier, *self._failures]
        if failures:
            listed = "\n".join(f"  {failure}" for failure in failures)
            others = "and the others are complete"
            if self.to_do:
                others = f"other processes are executing {len(self.to_do)}, and the others are complete"
            message = f"{len(failures)} of {len(runs)} runs failed, {others}:\n{listed}"
            if earlier:
                message += "\n  once the cause is gone, --retry repeats them"
            raise IncompleteStudy(message, self._directory, failures)


def _places(runs: Sequence[Run], reuse: Mapping[Path, ReusePlan]) -> dict[Path, tuple[int, bool]]:
    """Return each run's position in the queue, by family; runs that only reuse training follow the next family.

    A run that reuses all its training from another run ends within moments. Such runs are executed while other
    runs train, so that at the end no worker trains alone while others idle. They wait for one family only, since
    lenders keep their snapshots until these runs have used them.
    """
    ranks: dict[int, int] = {}
    places = {}
    for run in runs:
        family, whole = reuse[run.path].family, reuse[run.path].whole
        rank = ranks.setdefault(id(family), len(ranks))
        places[run.path] = (rank + whole, whole)
    return places


def _require_there(directory: Path) -> None:
    """Refuse to continue a study if its folder is gone, since a new folder would contain only half of the study."""
    if not (directory / FILE).exists():
        raise EdgeflError(
            f"{directory}: no longer exists: the study's folder was moved, renamed or deleted while it was"
            " written; the same command with --out NEW_PLACE continues the study"
        )
