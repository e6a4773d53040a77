"""What is still to be done of a study, done: alone, or beside other processes that work in the same directory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from edgefl.engine.records import Round
from edgefl.learners.building import available_cores, may_have_gpu, torch_device
from edgefl.run.results import StudyResults
from edgefl.run_directory.files import replace
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.snapshot import DEFAULT, Every
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario
from edgefl.studies.answering import look
from edgefl.studies.asking import ask
from edgefl.studies.board import Board
from edgefl.studies.course import Course
from edgefl.studies.directory import FILE, make, place, shard_of
from edgefl.studies.on_ray import OnRay
from edgefl.studies.one_run import work
from edgefl.studies.outcome import Failed
from edgefl.studies.planning import Plan, Run
from edgefl.studies.sharing import Share, shares
from edgefl.studies.states import State, state_of
from edgefl.studies.validation import check_builds
from edgefl.studies.workers import side_by_side


def run(
    plan: Plan,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    jobs: int | None = None,
    executor: Literal["local", "inline"] | OnRay = "local",
    begins: Callable[[Plan], None] = lambda part: None,
    progress: Callable[[str, Round | None], None] = lambda label, row: None,
    failed: Callable[[Failed], None] = lambda failure: None,
    noted: Callable[[str], None] = lambda note: None,
    fail_fast: bool = False,
    retry: bool = False,
    go_on: bool = True,
    shard: tuple[int, int] = (1, 1),
    share: bool = True,
    every: Every = DEFAULT,
) -> StudyResults:
    """Carry out what is still to be done of a study. A run that fails does not keep the others from their end.

    A study with a question is given further seeds until that is answered, or its budget is spent. Of a part of it, or
    of a plan that was made for some seeds, only these runs are done, and nothing is asked.

    Args:
        out: new or empty directory, or one that holds this study; None: `runs/NAME` in the current folder, numbered
            if something else has that name.
        device: as in `simulate`.
        jobs: processes at once; None: one per core (one in all on a GPU), or as many as the cluster has room for.
        executor: where runs are carried out: in processes of this machine, in this process, or on a Ray cluster.
        begins: told the runs before any of them begins; of a study with a question again whenever seeds are added.
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
        The study directory, with the answer to its question.

    Raises:
        IncompleteStudy: runs have failed.
        EdgeflError: the directory holds something else; it says what differs.
        Interrupted: Ctrl-C or SIGTERM; runs under way are marked `interrupted`.
    """
    how = _How(device, jobs, executor, progress, failed, noted, fail_fast, retry, shard, share, every)
    load = Loaded(download=True)

    def carry_out(part: Plan) -> Path:
        nonlocal out, go_on
        begins(part)
        out = _carry_out(part, out, how, load, go_on=go_on)
        go_on = True  # what is added goes into the same directory
        return out

    with interruptible():
        if plan.question is None or shard[1] > 1:
            return StudyResults(carry_out(plan))
        return StudyResults(ask(plan, carry_out, partial(look, plan)))


@dataclass(frozen=True)
class _How:
    """How runs are carried out, see `run`."""

    device: str
    jobs: int | None
    executor: Literal["local", "inline"] | OnRay
    progress: Callable[[str, Round | None], None]
    failed: Callable[[Failed], None]
    noted: Callable[[str], None]
    fail_fast: bool
    retry: bool
    shard: tuple[int, int]
    share: bool
    every: Every


def _carry_out(plan: Plan, out: str | Path | None, how: _How, load: Loaded, *, go_on: bool) -> Path:
    directory = place(plan, out, load, go_on=go_on)
    complete = {one.path for one in plan.runs if state_of(directory, one.path) is State.COMPLETED}
    shared = shares(plan.runs, load, complete) if how.share else {one.path: Share() for one in plan.runs}
    board = Board(directory, shard_of(plan.runs, shared, *how.shard), shared, retry=how.retry)
    on_ray = how.executor if isinstance(how.executor, OnRay) else None
    # before anything is written, and in each part of a study the same runs
    looked_at = _one_of_each_case(plan.runs, board.new)
    check_builds(looked_at, "auto" if on_ray else how.device, load)  # on Ray the device is another machine's
    make(directory, go_on=go_on)
    replace(directory / FILE, plan.file.read_text(encoding="utf-8"))
    for one in board.completed:
        how.progress(one.label, None)
    # other machines know this one's current folder by its whole name alone
    known_as = directory.resolve() if on_ray else directory
    course = Course(
        board, shared, known_as, how.device, how.every, how.progress, how.failed, fail_fast=how.fail_fast
    )
    if on_ray:
        on_ray.carry_out(course, how.jobs)
    else:
        at_once = how.jobs or (1 if _on_gpu(plan, how.device) else available_cores())
        workers = 1 if how.executor == "inline" else min(len(board.to_do), at_once)
        if workers > 1:
            side_by_side(course, work, workers, reported=course.reported, ended=course.ended)
        else:
            course.here()
    board.tidy()
    _tell(board, how.noted)
    course.conclude(plan.runs)
    return directory


def _on_gpu(plan: Plan, device: str) -> bool:
    """Whether models are trained on a GPU; where that is plain without PyTorch, nobody waits for it to load."""
    trains = any(one.scenario.learning is not None for one in plan.runs)
    if device == "cpu" or (device == "auto" and not (trains and may_have_gpu())):
        return False
    return torch_device(device).type == "cuda"


def _one_of_each_case(runs: Sequence[Run], new: Sequence[Run]) -> list[tuple[str, Scenario]]:
    """Return label and scenario of the first run of each variant in each setting that has new ones."""
    first: dict[tuple[str, ...], Run] = {}
    for one in runs:
        first.setdefault(one.case, one)
    cases = dict.fromkeys(one.case for one in new)
    return [(one.label, one.scenario) for one in (first[case] for case in cases)]


def _tell(board: Board, noted: Callable[[str], None]) -> None:
    if board.to_do:
        labels = ", ".join(one.label for one in board.to_do[:3])
        more = f" and {len(board.to_do) - 3} more" if len(board.to_do) > 3 else ""
        noted(f"other processes are doing {labels}{more}; the same command goes on with what they leave")
