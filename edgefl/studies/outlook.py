"""What a study is about to do: its runs, how they stand, and what they will take."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from edgefl.run.progress import wall_time
from edgefl.run.results import StudyResults
from edgefl.scenario.data_loading import Loaded
from edgefl.studies.asking import pairs, setting_of
from edgefl.studies.directory import FILE, check_unchanged
from edgefl.studies.forecast import Forecast, Range, forecast, size, told
from edgefl.studies.planning import Plan, Run
from edgefl.studies.sharing import Share, shares
from edgefl.studies.states import State, state_of

NOTHING = Range(0.0, 0.0)


@dataclass(frozen=True)
class _Needs:
    """What runs take together, each process with so much memory."""

    runs: Range = NOTHING
    wall_s: Range = NOTHING
    disk_bytes: Range = NOTHING
    memory_bytes: float = 0.0

    def __add__(self, other: "_Needs") -> "_Needs":
        return _Needs(
            _sum(self.runs, other.runs),
            _sum(self.wall_s, other.wall_s),
            _sum(self.disk_bytes, other.disk_bytes),
            max(self.memory_bytes, other.memory_bytes),
        )

    def up_to(self, times: int) -> "_Needs":
        """Return what up to so many of these take, or none."""
        return _Needs(
            Range(0.0, times * self.runs.most),
            Range(0.0, times * self.wall_s.most),
            Range(0.0, times * self.disk_bytes.most),
            self.memory_bytes,
        )


class _Forecasts:
    """What runs are expected to take: one probe for all seeds of a case."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._seen: dict[tuple[str, ...], Forecast] = {}

    def needs(self, run: Run, share: Share) -> _Needs:
        if run.case not in self._seen:
            self._seen[run.case] = forecast(run.scenario, self._device)
        found = self._seen[run.case]
        wall_s = NOTHING if share.whole else found.wall_s  # then all of its training is another run's
        return _Needs(Range(1, 1), wall_s, found.disk_bytes, found.probe.memory_bytes)


def outlook(plan: Plan, out: str | Path | None = None, *, device: str = "auto") -> Iterator[str]:
    """Say line by line what a study is about to do; two rounds of each case are run in a scratch directory.

    Raises:
        EdgeflError: the directory holds something else, or a run cannot begin.
    """
    load = Loaded(download=True)
    directory = Path(out) if out is not None else Path("runs", plan.name)
    if (directory / FILE).is_file():
        check_unchanged(plan, directory, load)
    states = {run.path: state_of(directory, run.path) for run in plan.runs}
    complete = [path for path, state in states.items() if state is State.COMPLETED]
    shared = shares(plan.runs, load, complete)
    for run in plan.runs:
        yield f"{states[run.path]:<12} {run.label}{_from(shared[run.path])}"
    counts = Counter(states.values())
    yield ", ".join(f"{counts[state]} {state}" for state in State if counts[state])
    forecasts, needs = _Forecasts(device), _Needs()
    for run in plan.runs:
        if states[run.path] is not State.COMPLETED:
            needs += forecasts.needs(run, shared[run.path])
    if needs.runs.most:
        yield (
            f"still to be done, roughly: {told(needs.wall_s, wall_time)} on one core, runs that take all training"
            f" from another one count nothing; {told(needs.disk_bytes, size)} on disk;"
            f" {size(needs.memory_bytes)} of memory for each process"
        )
    if plan.question is not None:
        yield _of_question(plan, directory, load, forecasts, needs)


def _of_question(plan: Plan, directory: Path, load: Loaded, forecasts: _Forecasts, needs: _Needs) -> str:
    """Say what a study takes with the seeds that its question may add, or that it is answered."""
    asked = plan.question
    assert asked is not None
    found = StudyResults(directory).answer if not needs.runs.most else None
    if found is not None and found.settled and vars(found.question) == asked.model_dump():
        return f"the question is answered: {found.sentence}"
    own = {run.scenario.seed for run in plan.runs}
    first, further = max(own) + 1, asked.budget - len(own)
    of_one_seed = pairs(plan, {setting_of(run): [first] for run in plan.runs}).runs if further else []
    shared = shares(of_one_seed, load)
    for run in of_one_seed:
        wanted = further - _complete(directory, run, range(first, first + further))
        needs += forecasts.needs(run, shared[run.path]).up_to(wanted)
    settings = len({setting_of(run) for run in plan.runs})
    where = f" in each of {settings} settings" if settings > 1 else ""
    return (
        f"with its question, which may add seeds up to a budget of {asked.budget}{where}:"
        f" {told(needs.runs, '{:,.0f}'.format)} runs, {told(needs.wall_s, wall_time)} on one core,"
        f" {told(needs.disk_bytes, size)} on disk"
    )


def _complete(directory: Path, run: Run, seeds: Sequence[int]) -> int:
    """Count the seeds with which a run is complete."""
    paths = [run.path.with_name(f"seed-{seed}") for seed in seeds]
    there = [path for path in paths if (directory / path).exists()]
    return sum(state_of(directory, path) is State.COMPLETED for path in there)


def _from(share: Share) -> str:
    if share.lender is None:
        return ""
    what = "training" if share.whole else "pilot sessions"
    return f", takes its {what} from {share.lender.as_posix()}"


def _sum(one: Range, other: Range) -> Range:
    return Range(one.least + other.least, one.most + other.most)
