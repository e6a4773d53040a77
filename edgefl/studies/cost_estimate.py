"""Estimate what a run will take before it starts: rounds, simulated time, wall time, memory and disk.

Rounds and simulated time follow from the scenario and from the latency of a few rounds; wall time, memory and disk
are those of a probe: the run itself, begun in a scratch directory and left after PROBE_ROUNDS rounds per federation.
Rounds of later sessions may take longer or shorter, so the figures are rough.
"""

import csv
import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from edgefl.engine.records import Round
from edgefl.engine.sessions import BoundedPolicy
from edgefl.errors import EdgeflError
from edgefl.learning.memory import peak_bytes
from edgefl.run.progress import wall_time
from edgefl.run.simulation import simulate
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.scenario import load as load_scenario
from edgefl.studies import planning
from edgefl.studies.validation import is_study
from edgefl.studies.workers import Failure, InOrder, side_by_side

PROBE_ROUNDS = 2  # of each federation, in the mean
PROBE_WALL_S = 120.0  # a probe is not continued after this time since its first round ended


class Range(NamedTuple):
    """The least and the most of an amount; equal where the amount is known."""

    least: float
    most: float

    def text(self, write: Callable[[float], str]) -> str:
        """Write it for people."""
        least, most = (write(value) if math.isfinite(value) else "unknown" for value in self)
        return least if least == most else f"{least} to {most}"


def total(parts: Iterable[tuple[Range, Range]]) -> Range:
    """Add up amounts, each multiplied by the number in front."""
    least = most = 0.0
    for number, amount in parts:
        least += number.least * amount.least if number.least else 0.0  # also of an amount without bound
        most += number.most * amount.most if number.most else 0.0
    return Range(least, most)


@dataclass(frozen=True)
class RunProbe:
    """What the first rounds of a run took.

    Attributes:
        cells: those with a server.
        rounds: that were run.
        latency_s: of a round, simulated, the mean. energy_j: of all devices in a round, the mean.
        start_wall_s: until the first round of each federation has begun. round_wall_s: of a round from then on, with
            the time between rounds.
        memory_bytes: largest resident memory of its process. round_bytes: of tables and journal, per round.
        cut_short: whether there was no time for more rounds.
    """

    cells: int
    rounds: int
    latency_s: float
    start_wall_s: float
    round_wall_s: float
    memory_bytes: float
    round_bytes: float
    energy_j: float = 0.0
    cut_short: bool = False


@dataclass(frozen=True)
class CostEstimate:
    """What a run is expected to take."""

    probe: RunProbe
    rounds: Range  # of all federations together
    simulated_s: Range
    wall_s: Range
    disk_bytes: Range

    def lines(self) -> list[str]:
        """Return it for people, a line each."""
        probe = self.probe
        cells = f" in {probe.cells} cells" if probe.cells > 1 else ""
        wall_s = probe.start_wall_s + probe.rounds * probe.round_wall_s
        return [
            f"expected from a probe of {probe.rounds} rounds in a scratch directory ({wall_time(wall_s)}), roughly:",
            f"  rounds          {self.rounds.text('{:,.0f}'.format)}{cells}",
            f"  simulated time  {self.simulated_s.text('{:,.6g} s'.format)}",
            f"  wall time       {self.wall_s.text(wall_time)}",
            f"  memory          {size(probe.memory_bytes)}",
            f"  disk            {self.disk_bytes.text(size)}, snapshots of models apart",
        ]


def estimate(scenario: Scenario, device: str = "auto") -> CostEstimate:
    """Run a probe of a scenario in a process of its own, and say what the whole run will take.

    Raises:
        EdgeflError: the run cannot begin.
    """
    probes: list[RunProbe] = []
    failures: list[Failure | None] = []
    # in a process of its own, whose memory is the run's alone
    side_by_side(
        InOrder([(scenario, device)]),
        _probe,
        1,
        reported=lambda task, made: probes.append(made),
        ended=lambda task, failure: failures.append(failure),
    )
    if failures[0] is not None:
        raise EdgeflError(failures[0].error)
    return expected(scenario, probes[0])


def estimates(path: Path, device: str = "auto", overrides: Sequence[str] = ()) -> Iterator[str]:
    """Say line by line what the run of a scenario file will take, or the runs of a study's cases, one seed each.

    Raises:
        EdgeflError: a file is not valid, or a run cannot begin.
    """
    if not is_study(path, overrides):
        yield from estimate(load_scenario(path, overrides), device).lines()
        return
    study, cases = planning.load(path)
    seeds = len(study.seeds)
    walls_s = []
    for case in cases:
        yield f"{case.folder} {case.variant}, one of {seeds} seeds:".lstrip()
        cost = estimate(case.scenario, device)
        yield from cost.lines()
        walls_s.append((Range(seeds, seeds), cost.wall_s))
    whole = total(walls_s).text(wall_time)
    yield f"the whole study, {seeds * len(cases)} runs one after the other: {whole}"


def expected(scenario: Scenario, probe: RunProbe) -> CostEstimate:
    """Say what a run takes whose first rounds took what the probe did."""
    each = [_course(one, probe) for one in scenario.by_federation.values()]
    rounds = Range(*(sum(counts) for counts in zip(*(rounds for rounds, _ in each), strict=True)))
    simulated_s = Range(*(max(ends_s) for ends_s in zip(*(ends for _, ends in each), strict=True)))
    return CostEstimate(
        probe=probe,
        rounds=rounds,
        simulated_s=simulated_s,
        wall_s=Range(*(probe.start_wall_s + number * probe.round_wall_s for number in rounds)),
        disk_bytes=Range(*(number * probe.round_bytes for number in rounds)),
    )


def _course(scenario: Scenario, probe: RunProbe) -> tuple[Range, Range]:
    """Return how many rounds a federation has in all cells together, and when its last one ends, s."""
    rules, cells = scenario.rounds, probe.cells
    taken_s, probes = probe.latency_s + rules.pause_s, _probes_of_sessions(scenario)
    spacing_s, probing_s = max(rules.every_s or 0.0, taken_s), probes * taken_s
    end_s = scenario.latest_end_s
    # on a grid, probes take none of its times
    for_training_s = end_s if rules.every_s else end_s - probing_s
    by_time = math.ceil(for_training_s / spacing_s) if spacing_s and end_s < math.inf else math.inf
    each = [min(rounds, by_time) for rounds in _rounds_of_sessions(scenario)]
    rounds = Range(*(cells * (number + probes) for number in each))
    # a run of a duration lasts it out, whatever its rounds do, unless its sessions end before
    in_sequence_s = [number * spacing_s + (0.0 if rules.every_s else probing_s) for number in each]
    simulated_s = Range(
        *(
            end_s if number == by_time else min(end_s, lasts_s - rules.pause_s)
            for number, lasts_s in zip(each, in_sequence_s, strict=True)
        )
    )
    return rounds, simulated_s


def _rounds_of_sessions(scenario: Scenario) -> Range:
    """Return how many rounds of training a federation's sessions have together; inf: what there is time for."""
    policy = scenario.sessions
    if policy.count is None or policy.longest is None:
        return Range(math.inf, math.inf)
    shortest = policy.min_rounds if isinstance(policy, BoundedPolicy) else policy.longest
    return Range(policy.count * shortest, policy.count * policy.longest)


def _probes_of_sessions(scenario: Scenario) -> int:
    """Return how many rounds of probes a federation's sessions have together, as far as their number is known."""
    policy, learning = scenario.sessions, scenario.learning
    if learning is None or policy.count is None or policy.longest is None:
        return 0
    return learning.warm_start.probes * max(0, policy.count - learning.pilot_sessions)


def _probe(task: tuple[Scenario, str], report: Callable[[RunProbe], None]) -> None:
    report(probe(*task))


def probe(
    scenario: Scenario,
    device: str = "auto",
    *,
    load: Loaded | None = None,
    most_s: float = PROBE_WALL_S,
    clock: Callable[[], float] = time.perf_counter,
) -> RunProbe:
    """Run the first rounds of a scenario in a scratch directory, which is removed.

    Args:
        load: as in `simulate`.
        most_s: a probe is not continued after this time since its first round ended.
        clock: of this time, and of wall times.

    Raises:
        EdgeflError: the run cannot begin.
    """
    rows: list[Round] = []
    walls_s: list[float] = []
    cells = len(scenario.layout.served)
    servers = cells * len(scenario.by_federation)
    most_rounds = PROBE_ROUNDS * servers
    began_s = clock()

    class ProbeEnds(Exception):
        pass

    def over() -> bool:
        return walls_s[-1] - walls_s[0] >= most_s

    def note(row: Round) -> None:
        rows.append(row)
        walls_s.append(clock() - began_s)
        # first rounds that end at one time are all seen
        all_began = len(rows) >= servers or row.end_s > rows[0].end_s
        if len(rows) >= most_rounds or (all_began and over()):
            raise ProbeEnds

    with tempfile.TemporaryDirectory(prefix="edgefl-probe-") as scratch:
        run = Path(scratch) / "run"
        with suppress(ProbeEnds):
            simulate(scenario, run, device=device, on_round=note, load=load)
        energy_j = _round_energy_j(sorted(run.rglob("rounds.csv")), cells)
        written = sum(file.stat().st_size for file in run.rglob("*") if file.suffix in (".csv", ".jsonl"))
    first = min(servers, len(rows) - 1)  # these began with the run
    round_wall_s = (walls_s[-1] - walls_s[first - 1]) / (len(rows) - first) if first else walls_s[-1]
    return RunProbe(
        cells=cells,
        rounds=len(rows),
        latency_s=float(np.mean([row.latency_s for row in rows])),
        start_wall_s=max(0.0, walls_s[-1] - len(rows) * round_wall_s),
        round_wall_s=round_wall_s,
        memory_bytes=peak_bytes(),
        round_bytes=written / len(rows),
        energy_j=energy_j,
        cut_short=len(rows) < most_rounds and over(),
    )


def _round_energy_j(tables: Sequence[Path], cells: int) -> float:
    """Return the mean energy of a round.

    Where radios have tails, those of each server's last round, which nothing followed, would be too long.

    Args:
        tables: of each federation. cells: with a server.
    """
    energies_j: list[float] = []
    for table in tables:
        with table.open(encoding="utf-8", newline="") as file:
            rows = [(float(row["energy_j"]), float(row["energy_tail_j"])) for row in csv.DictReader(file)]
        some = rows[:-cells] if any(tail_j for _, tail_j in rows) else rows
        energies_j += [energy_j for energy_j, _ in some or rows]
    return float(np.mean(energies_j))


def size(count: float) -> str:
    """Write a number of bytes for people: `3.4 MB`."""
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.{1 if count < 10 * length else 0}f} {unit}"
    return f"{count:.0f} bytes"
