"""List the runs of a study with their states, and estimate the remaining cost, without starting the study."""

import math
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from edgefl.errors import EdgeflError
from edgefl.run.forecast import Forecast, Range, total
from edgefl.run.plan import prepare
from edgefl.run.probe import Probe, probe
from edgefl.run.probe_size import PROBE_ROUNDS
from edgefl.run.progress import size, wall_time
from edgefl.run.results import answer_in
from edgefl.run_directory.circumstances import leaves
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario, written
from edgefl.studies.adding_seeds import pairs
from edgefl.studies.directory import check_same, place
from edgefl.studies.planning import Run, StudyPlan
from edgefl.studies.states import State, state_of
from edgefl.studies.training_reuse import ReusePlan, plan_reuse
from edgefl.studies.validation import check_build

ONE = Range(1, 1)
CHECKS_S = 20.0  # wall time for building runs, after which no further runs are checked
FURTHER_PROBES_S = 0.2  # wall time of probes, after which the nearest probe's figures are used
Costs = list[tuple[Range, "Cost"]]  # pairs: number of runs, and the cost of a single run
Found = tuple[set[tuple[str, str]], Probe]


class Cost(NamedTuple):
    """A run's wall time, from all possible reuse of training to what is certain; its disk space and its memory."""

    wall_s: Range
    disk_bytes: Range
    memory_bytes: float


class _Forecasts:
    """Forecast runs in this process, by a probe of each case while probing is quick, and then by the nearest probe.

    Cases with the same first rounds are probed once; a run that is not probed is only built and checked. A run that
    reuses all of its training is probed without training.
    """

    def __init__(self, device: str, load: Loaded, *, several: bool) -> None:
        self._device, self._load, self._several = device, load, several
        self._loading_s = 0.0  # wall time that a process spends once, on loading PyTorch and data
        self._of_cases: dict[tuple[bool, tuple[str, ...]], Probe] = {}
        # probes without and probes with training, each with its scenario's keys and values
        self._probes: tuple[list[Found], list[Found]] = [], []
        self._further_s = 0.0  # wall time of probes after the first one, which loads PyTorch and data
        self._checks_s = 0.0  # wall time of checks without a probe

    @property
    def late(self) -> bool:
        """Whether building runs has taken so long that no further runs are checked."""
        return self._checks_s > CHECKS_S

    def check(self, run: Run, reuse: ReusePlan) -> None:
        """Build a run as for a real start, either to probe its first rounds or only to check it."""
        trains = reuse.certain < math.inf
        if self._known(run, trains) is None:
            self._probe(run, trains)
            return
        began_s = time.perf_counter()
        check_build(run.scenario, self._device, self._load)
        self._checks_s += time.perf_counter() - began_s

    def of(self, run: Run, reuse: ReusePlan) -> Cost:
        """Return a run's cost, without the training that it certainly reuses, or may reuse, from another run."""
        each = [self._forecast(run, reused) for reused in dict.fromkeys((reuse.certain, reuse.last))]
        wall_s = Range(min(one.wall_s.least for one in each), max(one.wall_s.most for one in each))
        return Cost(wall_s, each[0].disk_bytes, each[0].probe.memory_bytes)

    def _forecast(self, run: Run, reused: float) -> Forecast:
        """Return a run's forecast if its first sessions reuse training: none of its own if `reused` is inf."""
        trains, sessions = reused < math.inf, run.scenario.sessions.count
        made = self._known(run, trains) or self._probe(run, trains)
        own = 1.0 - min(1.0, reused / sessions) if trains and sessions else 1.0
        return Forecast(run.scenario, probe=made, own=own)

    def wall_time(self, costs: Costs) -> str:
        """Format the wall time that one process needs for the runs."""
        once = (ONE, Range(self._loading_s, self._loading_s))
        return total([once, *((number, cost.wall_s) for number, cost in costs)]).text(wall_time)

    def _known(self, run: Run, trains: bool) -> Probe | None:
        """Return the probe of a run's first rounds, or the nearest probe if probing takes long, or None."""
        if (trains, run.case) not in self._of_cases:
            own = _of_first_rounds(run.scenario)
            keys, near = min(self._probes[trains], key=lambda one: len(own ^ one[0]), default=(own, None))
            if near is None or (keys != own and self._further_s < FURTHER_PROBES_S):
                return None
            self._of_cases[trains, run.case] = near
        return self._of_cases[trains, run.case]

    def _probe(self, run: Run, trains: bool) -> Probe:
        first, began_s = not any(self._probes), time.perf_counter()
        made = self._tried(run, trains)
        if self._several and first and made.start_wall_s > made.rounds * made.round_wall_s:
            loads, made = made, self._tried(run, trains)
            self._loading_s = max(0.0, loads.start_wall_s - made.start_wall_s)
        if not first:
            self._further_s += time.perf_counter() - began_s
        self._probes[trains].append((_of_first_rounds(run.scenario), made))
        self._of_cases[trains, run.case] = made
        return made

    def _tried(self, run: Run, trains: bool) -> Probe:
        built = prepare(run.scenario, device=self._device, load=self._load)
        return probe(built if trains else built.untrained())


def _of_first_rounds(scenario: Scenario) -> set[tuple[str, str]]:
    """Return the keys and values on which a probe's rounds depend; pilot sessions do not depend on the warm start."""
    keys = written(scenario)
    longest, learning = scenario.sessions.longest, scenario.learning
    if learning is not None and learning.pilot_sessions * (longest or PROBE_ROUNDS) >= PROBE_ROUNDS:
        del keys["learning"]["warm_start"]
    return {(key, str(value)) for key, value in leaves(keys)}


def dry_run(plan: StudyPlan, out: str | Path | None = None, *, device: str = "auto") -> Iterator[str]:
    """Yield lines about a study's remaining runs; a few rounds of some cases are run in a scratch directory.

    Raises:
        EdgeflError: the directory contains something other than this study, or (after the last line) runs would fail.
    """
    load = Loaded(download=True)
    prepared = plan.prepared(load)
    check_same(out, plan.name, prepared)
    directory, records = place(plan.name, out, prepared, go_on=True)
    states = {path: state_of(directory, path, records.get(path, {})) for path in prepared}
    reuse = plan_reuse(prepared, states)
    for run in plan.runs:
        yield f"{states[run.path]:<12} {run.label}{_from(reuse[run.path])}"
    counts = Counter(states.values())
    yield ", ".join(f"{counts[state]} {state}" for state in State if counts[state])
    forecasts = _Forecasts(device, load, several=len(plan.runs) > 1)
    to_do = [run for run in plan.runs if states[run.path] is not State.COMPLETED]
    failing = yield from _failing(to_do, reuse, forecasts)
    costs = [(ONE, forecasts.of(run, reuse[run.path])) for run in to_do if run.label not in failing]
    if costs:
        yield (
            f"still to be done, roughly: {forecasts.wall_time(costs)} on one core, not counting training that a run "
            f"reuses from another run; {_disk(costs)} on disk; "
            f"{size(max(cost.memory_bytes for _, cost in costs))} of memory for each process"
        )
    if plan.question is not None and (costs or not failing):
        yield _of_question(plan, directory, load, forecasts, costs)
    if failing:
        alike = dict.fromkeys(failing.values())
        told = [(", ".join(one for one in failing if failing[one] == error), error) for error in alike]
        listed = "".join(f"\n  {labels}: {error}" for labels, error in told)
        raise EdgeflError(f"{len(failing)} of {len(to_do)} runs would fail at their start:{listed}")


def _failing(
    runs: Sequence[Run], reuse: Mapping[Path, ReusePlan], forecasts: _Forecasts
) -> Generator[str, None, dict[str, str]]:
    """Build runs as `simulate` does at their start; return the errors of runs that fail, by label.

    Yields:
        A line on how many runs were built, if building all runs would take too long.
    """
    failing = {}
    for number, run in enumerate(runs):
        if forecasts.late:
            yield f"only {number} of {len(runs)} runs were checked: to check all would take over {CHECKS_S:g} s"
            break
        try:
            forecasts.check(run, reuse[run.path])
        except EdgeflError as error:
            failing[run.label] = str(error)
    return failing


def _of_question(plan: StudyPlan, directory: Path, load: Loaded, forecasts: _Forecasts, costs: Costs) -> str:
    """Describe a study's cost including the seeds that its question may add, or state the question's answer."""
    question = plan.question
    assert question is not None
    answer = None if costs else answer_in(directory)
    if answer is not None and answer.settled and vars(answer.question) == question.model_dump():
        return f"the question is answered: {answer.sentence}"
    own = {run.scenario.seed for run in plan.runs}
    first, further = max(own) + 1, question.budget - len(own)
    if further:
        of_one_seed = pairs(plan, {run.setting: [first] for run in plan.runs})
        reuse = plan_reuse(of_one_seed.prepared(load))
        for run in of_one_seed.runs:
            most = further - _complete(directory, run, range(first, first + further))
            costs = [*costs, (Range(0, most), forecasts.of(run, reuse[run.path]))]
    runs = total((number, ONE) for number, _ in costs)
    settings = len({run.setting for run in plan.runs})
    where = f" in each of {settings} settings" if settings > 1 else ""
    return (
        f"with the seeds that its question may add, up to a budget of {question.budget}{where}:"
        f" {runs.text('{:,.0f}'.format)} runs, {forecasts.wall_time(costs)} on one core, {_disk(costs)} on disk"
    )


def _disk(costs: Costs) -> str:
    return total((number, cost.disk_bytes) for number, cost in costs).text(size)


def _complete(directory: Path, run: Run, seeds: Sequence[int]) -> int:
    """Count the seeds for which a case of a study has a completed run."""
    paths = [run.path.with_name(f"seed-{seed}") for seed in seeds]
    there = [path for path in paths if (directory / path).exists()]
    return sum(state_of(directory, path) is State.COMPLETED for path in there)


def _from(reuse: ReusePlan) -> str:
    if reuse.lender is None:
        return ""
    lender, condition = reuse.lender.as_posix(), "as long as the same devices take part"
    if reuse.certain in (0, reuse.last):
        return (
            f", takes its {_sessions(1, reuse.last)} from {lender}{'' if reuse.certain else f' {condition}'}"
        )
    more = _sessions(int(reuse.certain) + 1, reuse.last)
    return f", takes its {_sessions(1, reuse.certain)} from {lender}, and {more} {condition}"


def _sessions(first: int, last: float) -> str:
    if last == math.inf:
        return "training"
    return f"session {first}" if last == first else f"sessions {first} to {last:g}"
