"""What a run will take, before it is started: rounds, simulated time, wall time, memory and disk.

Rounds and simulated time follow from the scenario and from the latency of a few rounds; wall time, memory and disk
are those of a probe: the run itself, begun in a scratch directory and left after PROBE_ROUNDS rounds per federation.
Rounds of later sessions may take longer or shorter, so the figures are rough.
"""

import math
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from edgefl.config.yaml_source import Source
from edgefl.engine.records import Round
from edgefl.engine.sessions import BoundedPolicy
from edgefl.errors import EdgeflError
from edgefl.rng import Streams
from edgefl.run.progress import wall_time
from edgefl.run.simulation import simulate
from edgefl.scenario.scenario import Scenario, dump, from_source, load
from edgefl.scenario.world import World
from edgefl.studies import planning
from edgefl.studies.workers import Failure, InOrder, side_by_side

PROBE_ROUNDS = 2  # of each federation, in the mean
PROBE_WALL_S = 120.0  # a probe that has had one round by then is not continued


class Range(NamedTuple):
    """The least and the most of something; equal where it is known."""

    least: float
    most: float


@dataclass(frozen=True)
class Probe:
    """What the first rounds of a run took.

    Attributes:
        federations: cells with a server.
        rounds: that were run.
        latency_s: of a round, simulated, the mean.
        start_wall_s: until the first round of each federation has begun. round_wall_s: of a round from then on, with
            the time between rounds.
        memory_bytes: largest resident memory of its process. round_bytes: of tables and journal, per round.
    """

    federations: int
    rounds: int
    latency_s: float
    start_wall_s: float
    round_wall_s: float
    memory_bytes: float
    round_bytes: float


@dataclass(frozen=True)
class Forecast:
    """What a run is expected to take."""

    probe: Probe
    rounds: Range  # of all federations together
    simulated_s: Range
    wall_s: Range
    disk_bytes: Range

    def lines(self) -> list[str]:
        """Return it for people, a line each."""
        probe = self.probe
        cells = f" in {probe.federations} cells" if probe.federations > 1 else ""
        wall_s = probe.start_wall_s + probe.rounds * probe.round_wall_s
        return [
            f"expected from a probe of {probe.rounds} rounds in a scratch directory ({wall_time(wall_s)}), roughly:",
            f"  rounds          {told(self.rounds, '{:,.0f}'.format)}{cells}",
            f"  simulated time  {told(self.simulated_s, '{:,.6g} s'.format)}",
            f"  wall time       {told(self.wall_s, wall_time)}",
            f"  memory          {size(probe.memory_bytes)}",
            f"  disk            {told(self.disk_bytes, size)}, snapshots of models apart",
        ]


def forecast(scenario: Scenario, device: str = "auto") -> Forecast:
    """Run a probe of a scenario in a process of its own, and say what the whole run will take.

    Raises:
        EdgeflError: the run cannot begin.
    """
    found: list[Probe] = []
    failures: list[Failure] = []

    def ended(task: Any, failure: Failure | None) -> None:
        if failure is not None:
            failures.append(failure)

    # in a process of its own, whose memory is the run's alone
    task = InOrder([(scenario, device)])
    side_by_side(task, _probe, 1, reported=lambda task, told: found.append(told), ended=ended)
    if failures:
        raise EdgeflError(failures[0].error)
    return expected(scenario, found[0])


def forecasts(path: Path, device: str = "auto") -> Iterator[str]:
    """Say line by line what the run of a scenario file will take, or the runs of a study's cases, one seed each.

    Raises:
        EdgeflError: a file is not valid, or a run cannot begin.
    """
    source = Source(path)
    if "variants" not in source.data:
        yield from forecast(from_source(source), device).lines()
        return
    of_study, cases = planning.load(path)
    wall_s, seeds = [0.0, 0.0], len(of_study.seeds)
    for case in cases:
        yield f"{case.folder} {case.variant}, one of {seeds} seeds:".lstrip()
        found = forecast(case.scenario, device)
        yield from found.lines()
        wall_s = [sum(pair) for pair in zip(wall_s, found.wall_s, strict=True)]
    whole = told(Range(*(seeds * each_s for each_s in wall_s)), wall_time)
    yield f"the whole study, {seeds * len(cases)} runs one after the other: {whole}"


def expected(scenario: Scenario, probe: Probe) -> Forecast:
    """Say what a run takes whose first rounds took what the probe did."""
    rules, federations = scenario.rounds, probe.federations
    spacing_s = max(rules.every_s or 0.0, probe.latency_s + rules.pause_s)
    end_s = latest_end_s(scenario)
    by_time = math.ceil(end_s / spacing_s) if spacing_s and end_s < math.inf else math.inf
    each = [min(rounds, by_time) for rounds in rounds_of_sessions(scenario)]
    rounds = Range(*(federations * number for number in each))
    # a run of a duration lasts it out, whatever its rounds do, unless its sessions end before
    simulated_s = Range(
        *(end_s if number == by_time else min(end_s, number * spacing_s - rules.pause_s) for number in each)
    )
    return Forecast(
        probe=probe,
        rounds=rounds,
        simulated_s=simulated_s,
        wall_s=Range(*(probe.start_wall_s + number * probe.round_wall_s for number in rounds)),
        disk_bytes=Range(*(number * probe.round_bytes for number in rounds)),
    )


def latest_end_s(scenario: Scenario) -> float:
    """Return when a run ends by the clock: at its duration, or with the last of its sessions that end by time."""
    policy, end_s = scenario.sessions, 0.0
    for _ in range(policy.count or 0):
        end_s = policy.until_s(end_s)
        if end_s >= (scenario.duration_s or math.inf):
            break
    return min(scenario.duration_s or math.inf, end_s if policy.count else math.inf)


def rounds_of_sessions(scenario: Scenario) -> Range:
    """Return how many rounds a federation's sessions have together; inf: as many as there is time for."""
    policy, learning = scenario.sessions, scenario.learning
    if policy.count is None or policy.longest is None:
        return Range(math.inf, math.inf)
    shortest = policy.min_rounds if isinstance(policy, BoundedPolicy) else policy.longest
    probes = 0
    if learning is not None:
        probes = learning.warm_start.probes * max(0, policy.count - learning.pilot_sessions)
    return Range(policy.count * shortest + probes, policy.count * policy.longest + probes)


def _probe(task: tuple[Scenario, str], report: Callable[[Probe], None]) -> None:
    report(probe(*task))


def probe(scenario: Scenario, device: str = "auto") -> Probe:
    """Run the first rounds of a scenario in a scratch directory, which is removed.

    Raises:
        EdgeflError: the run cannot begin.
    """
    seen: list[tuple[float, Round]] = []
    began = time.perf_counter()

    class Enough(Exception):
        pass

    with tempfile.TemporaryDirectory(prefix="edgefl-probe-") as scratch:
        # as a run directory has it: the run may be described by more than this scenario's own file
        described = Path(scratch) / "scenario.yaml"
        described.write_text(dump(scenario))
        scenario = load(described)
        federations = len(World(scenario, Streams(scenario.seed)).federations)
        run = Path(scratch) / "run"

        def note(row: Round) -> None:
            seen.append((time.perf_counter() - began, row))
            if len(seen) >= PROBE_ROUNDS * federations or seen[-1][0] > PROBE_WALL_S:
                raise Enough

        with suppress(Enough):
            simulate(scenario, run, device=device, on_round=note)
        written = sum(file.stat().st_size for file in run.iterdir() if file.suffix in (".csv", ".jsonl"))
    walls_s = [wall_s for wall_s, _ in seen]
    first = min(federations, len(seen) - 1)  # these began with the run
    round_wall_s = (walls_s[-1] - walls_s[first - 1]) / (len(seen) - first) if first else walls_s[-1]
    return Probe(
        federations=federations,
        rounds=len(seen),
        latency_s=sum(row.latency_s for _, row in seen) / len(seen),
        start_wall_s=max(0.0, walls_s[-1] - len(seen) * round_wall_s),
        round_wall_s=round_wall_s,
        memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024.0,
        round_bytes=written / len(seen),
    )


def size(count: float) -> str:
    """Write a number of bytes for people: `3.4 MB`."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.{1 if count < 10 * length else 0}f} {unit}"
    return f"{count:.0f} bytes"


def told(values: Range, write: Callable[[float], str]) -> str:
    """Write a range for people."""
    least, most = (write(value) for value in values)
    return least if least == most else f"{least} to {most}"
