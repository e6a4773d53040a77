"""The runs of a study as tasks of whoever works on them, and what becomes of them."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from edgefl.engine.records import Round
from edgefl.errors import EdgeflError
from edgefl.run.study_membership import Sharing
from edgefl.run_directory import status
from edgefl.run_directory.snapshot import Every
from edgefl.studies.board import Board
from edgefl.studies.claims import Claims
from edgefl.studies.one_run import ELSEWHERE, Task, leave_a_trace, work
from edgefl.studies.outcome import Failed, IncompleteStudy
from edgefl.studies.planning import Run
from edgefl.studies.sharing import Share
from edgefl.studies.workers import LOOK_AGAIN_S, Failure


class Course:
    """A supply of tasks, see `edgefl.studies.workers.Supply`; told of what they report and how they end."""

    def __init__(
        self,
        board: Board,
        shared: dict[Path, Share],
        directory: Path,
        device: str,
        every: Every,
        progress: Callable[[str, Round | None], None],
        failed: Callable[[Failed], None],
        *,
        fail_fast: bool,
    ) -> None:
        self._board = board
        self._shared = shared
        self._directory = directory
        self._device = device
        self._every = every
        self._progress = progress
        self._failed = failed
        self._fail_fast = fail_fast
        self._elsewhere: set[Path] = set()
        self._failures: list[Failed] = []

    def take(self, threads: int | None = 1) -> Task | None:
        """Return the next run as a task."""
        found = self._board.take()
        if found is None:
            return None
        sharing: Sharing = self._shared[found.path].sharing(self._directory)
        return Task(self._directory, found, self._device, sharing, self._every, threads)

    def waits(self) -> bool:
        """Whether a run waits for another process."""
        return self._board.waits()

    def reported(self, task: Task, told: Round | str) -> None:
        """Pass a round on, or note that another process was quicker."""
        if isinstance(told, Round):
            self._progress(task.run.label, told)
        elif told == ELSEWHERE:
            self._elsewhere.add(task.run.path)

    def ended(self, task: Task, failure: Failure | None) -> None:
        """Note how a run has ended."""
        planned = task.run
        if planned.path in self._elsewhere:
            self._elsewhere.discard(planned.path)
            self._board.put_back(planned)
            return
        self._board.ended(planned)
        if failure is None:
            self._progress(planned.label, None)
            return
        leave_a_trace(task, failure)  # a process that was killed has not
        self._failures.append(Failed(planned.label, task.path, failure.error, failure.trace))
        self._failed(self._failures[-1])
        if self._fail_fast:
            begun = "; the study has ended there, the same command goes on with it"
            raise IncompleteStudy(f"{self._failures[0]}{begun}", self._directory, self._failures)

    def lost(self, task: Task) -> None:
        """Note that a run's process has gone without a word, and is no more: another goes on with the run."""
        if not Claims(self._directory).held(task.run.path):  # it may have been lost to another process
            with suppress(EdgeflError):  # of a run that has not begun
                status.give_up(task.path)
        self._board.put_back(task.run)

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
            Failed(one.label, self._directory / one.path, "failed before; --retry does it again")
            for one in self._board.failed
        ]
        failures = [*earlier, *self._failures]
        if failures:
            listed = "\n".join(f"  {failure}" for failure in failures)
            others = "the others are complete"
            if self._board.to_do:
                others = f"{len(self._board.to_do)} are under way elsewhere, the others are complete"
            message = f"{len(failures)} of {len(runs)} runs failed, {others}:\n{listed}"
            raise IncompleteStudy(message, self._directory, failures)
