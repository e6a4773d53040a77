"""What is still to be done of a study, done: alone, or beside other processes that work in the same directory."""

import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from edgefl.data_loading import Loaded
from edgefl.engine.records import Round
from edgefl.learners import available_cores, torch_device
from edgefl.membership import Sharing
from edgefl.preview import preview_all
from edgefl.run_directory.files import replace
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.snapshot import DEFAULT, Every
from edgefl.scenario import Scenario
from edgefl.studies.board import Board
from edgefl.studies.directory import FILE, make, place, shard_of
from edgefl.studies.one_run import ELSEWHERE, Task, leave_a_trace, work
from edgefl.studies.outcome import Failed, IncompleteStudy
from edgefl.studies.planning import Plan, Run
from edgefl.studies.sharing import Share, shares
from edgefl.studies.states import State, state_of
from edgefl.workers import LOOK_AGAIN_S, Failure, side_by_side


def run(
    plan: Plan,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    jobs: int | None = None,
    progress: Callable[[str, Round | None], None] = lambda label, row: None,
    failed: Callable[[Failed], None] = lambda failure: None,
    noted: Callable[[str], None] = lambda note: None,
    fail_fast: bool = False,
    retry: bool = False,
    go_on: bool = True,
    shard: tuple[int, int] = (1, 1),
    share: bool = True,
    every: Every = DEFAULT,
) -> Path:
    """Carry out what is still to be done of a study. A run that fails does not keep the others from their end.

    Args:
        out: new or empty directory, or one that holds this study; None: `runs/NAME` in the current folder, numbered
            if something else has that name.
        device: as in `simulate`.
        jobs: processes at once; None: one per core (one in all on a GPU).
        progress: called with a run's label and each finished round, and with None when the run is complete.
        failed: called with each run that fails, at once.
        noted: told what the user should know, such as runs that other processes are doing.
        fail_fast: end the study with the first run that fails.
        retry: do runs again that have failed before.
        go_on: whether a directory may hold some of the study already.
        shard: (i, n): only the i-th of n parts, from 1 on.
        share: whether runs whose learners are told and asked the same share a training; results are the same.
        every: how often a run takes a snapshot.

    Returns:
        The study directory.

    Raises:
        IncompleteStudy: runs have failed.
        EdgeflError: the directory holds something else; it says what differs.
        Interrupted: Ctrl-C or SIGTERM; runs under way are marked `interrupted`.
    """
    load = Loaded(download=True)
    with interruptible():
        at_once = 1 if _on_gpu(plan, device) else available_cores()
        directory = place(plan, out, load, go_on=go_on)
        complete = {one.path for one in plan.runs if state_of(directory, one.path) is State.COMPLETED}
        shared = shares(plan.runs, load, complete) if share else {one.path: Share() for one in plan.runs}
        board = Board(directory, shard_of(plan.runs, shared, *shard), shared, retry=retry)
        preview_all(_one_of_each_case(board.new), device, load)  # before anything of them is written
        make(directory, go_on=go_on)
        replace(directory / FILE, plan.file.read_text(encoding="utf-8"))
        for one in board.completed:
            progress(one.label, None)
        course = _Course(board, shared, directory, device, every, progress, failed, fail_fast=fail_fast)
        workers = min(len(board.to_do), jobs or at_once)
        if workers > 1:
            side_by_side(course, work, workers, reported=course.reported, ended=course.ended)
        else:
            course.here()
        board.tidy()
        _tell(board, noted)
        course.conclude(plan.runs)
    return directory


class _Course:
    """The runs of a study as tasks of workers, and what becomes of them."""

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


def _on_gpu(plan: Plan, device: str) -> bool:
    """Whether models are trained on a GPU; a study that trains nothing never waits for PyTorch to load."""
    if device == "auto" and all(one.scenario.learning is None for one in plan.runs):
        return False
    return torch_device(device).type == "cuda"


def _one_of_each_case(runs: Sequence[Run]) -> list[tuple[str, Scenario]]:
    """Return label and scenario of a run of each variant in each setting."""
    first: dict[tuple[str, ...], Run] = {}
    for one in runs:
        first.setdefault((one.member.variant, *one.member.setting.values()), one)
    return [(one.label, one.scenario) for one in first.values()]


def _tell(board: Board, noted: Callable[[str], None]) -> None:
    if board.to_do:
        labels = ", ".join(one.label for one in board.to_do[:3])
        more = f" and {len(board.to_do) - 3} more" if len(board.to_do) > 3 else ""
        noted(f"other processes are doing {labels}{more}; the same command goes on with what they leave")
