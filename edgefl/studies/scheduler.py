"""Hand the runs of a study to processes as tasks, and take in how each run ends."""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run_directory import status
from edgefl.studies.directory import FILE
from edgefl.studies.one_run import ELSEWHERE, RunTask, leave_a_trace, work
from edgefl.studies.options import Failed, IncompleteStudy, StudyOptions
from edgefl.studies.planning import Run
from edgefl.studies.run_locks import RunLocks
from edgefl.studies.run_queue import RunQueue
from edgefl.studies.training_reuse import ReusePlan
from edgefl.studies.workers import LOOK_AGAIN_S, Failure


class RunScheduler:
    """Supply tasks (see `edgefl.studies.workers.Supply`), and take in the reports and the end of each."""

    def __init__(
        self, queue: RunQueue, reuse: Mapping[Path, ReusePlan], directory: Path, options: StudyOptions
    ) -> None:
        self._queue = queue
        self._reuse = reuse
        self._directory = directory
        self._options = options
        self._elsewhere: set[Path] = set()
        self._failures: list[Failed] = []

    def take(self, threads: int | None = 1) -> RunTask | None:
        """Return the next run as a task.

        Raises:
            EdgeflError: the study's folder is gone.
        """
        _require_there(self._directory)
        run = self._queue.take()
        if run is None:
            return None
        sharing = self._reuse[run.path].in_directory(self._directory)
        return RunTask(self._directory, run, self._options.device, sharing, self._options.every, threads)

    def waits(self) -> bool:
        """Whether a run waits for another process."""
        return self._queue.waits()

    def reported(self, task: RunTask, report: Round | str) -> None:
        """Pass a round on, or note that another process was quicker."""
        if isinstance(report, Round):
            self._options.progress(task.run.label, report)
        elif report == ELSEWHERE:
            self._elsewhere.add(task.run.path)

    def ended(self, task: RunTask, failure: Failure | None) -> None:
        """Note how a run has ended."""
        run = task.run
        if run.path in self._elsewhere:
            self._elsewhere.discard(run.path)
            self._queue.put_back(run)
            return
        _require_there(self._directory)
        self._queue.ended(run)
        if failure is None:
            self._options.progress(run.label, None)
            return
        if not RunLocks(self._directory).held(
            run.path
        ):  # it may have failed to see that another process has it
            leave_a_trace(task, failure)  # a process that was killed has not
        self._failures.append(Failed(run.label, task.path, failure.error, failure.trace))
        self._options.failed(self._failures[-1])
        if self._options.fail_fast:
            begun = "; the study has ended there, the same command goes on with it"
            raise IncompleteStudy(f"{self._failures[0]}{begun}", self._directory, self._failures)

    def lost(self, task: RunTask) -> None:
        """Note that a run's process has gone without a word, and is no more: another goes on with the run."""
        if not RunLocks(self._directory).held(task.run.path):  # it may have been lost to another process
            with suppress(EdgeflError):  # of a run that has not begun
                status.give_up(task.path)
        self._queue.put_back(task.run)

    def here(self) -> None:
        """Do the runs one after the other in this process."""
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
        """Say which runs have failed, now or before.

        Raises:
            IncompleteStudy: some have.
        """
        earlier = [
            Failed(run.label, path, f"failed before ({path / status.FILE} says why); --retry does it again")
            for run in self._queue.failed
            for path in [self._directory / run.path]
        ]
        failures = [*earlier, *self._failures]
        if failures:
            listed = "\n".join(f"  {failure}" for failure in failures)
            others = "the others are complete"
            if self._queue.to_do:
                others = f"{len(self._queue.to_do)} are under way elsewhere, the others are complete"
            message = f"{len(failures)} of {len(runs)} runs failed, {others}:\n{listed}"
            raise IncompleteStudy(message, self._directory, failures)


def _require_there(directory: Path) -> None:
    """Refuse to go on with a study whose folder is gone: what is written to its name would be half a study.

    Raises:
        EdgeflError: it was moved, renamed or deleted.
    """
    if not (directory / FILE).exists():
        raise EdgeflError(
            f"{directory}: is not there any more: the study's folder was moved, renamed or deleted while it was"
            " written; the same command goes on, with --out where it is now"
        )
