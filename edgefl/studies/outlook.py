"""What a study is about to do: its runs, how they stand, and what they will take."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from edgefl.data_loading import Loaded
from edgefl.forecast import Range, forecast, size, told
from edgefl.progress import wall_time
from edgefl.studies.directory import FILE, check_unchanged
from edgefl.studies.planning import Plan
from edgefl.studies.sharing import Share, shares
from edgefl.studies.states import State, state_of

NOTHING = Range(0.0, 0.0)


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
    wall_s, bytes_, memory, seen = NOTHING, NOTHING, 0.0, {}
    for run in plan.runs:
        if states[run.path] is State.COMPLETED:
            continue
        case = (run.member.variant, *run.member.setting.values())
        if case not in seen:  # the seeds of a case take the same
            seen[case] = forecast(run.scenario, device)
        found = seen[case]
        if not (shared[run.path].lender and shared[run.path].whole):
            wall_s = _sum(wall_s, found.wall_s)
        bytes_ = _sum(bytes_, found.disk_bytes)
        memory = max(memory, found.probe.memory_bytes)
    if seen:
        yield (
            f"still to be done, roughly: {told(wall_s, wall_time)} on one core, runs that take all training from"
            f" another one count nothing; {told(bytes_, size)} on disk; {size(memory)} of memory for each process"
        )


def _from(share: Share) -> str:
    if share.lender is None:
        return ""
    what = "training" if share.whole else "pilot sessions"
    return f", takes its {what} from {share.lender.as_posix()}"


def _sum(one: Range, other: Range) -> Range:
    return Range(one.least + other.least, one.most + other.most)
