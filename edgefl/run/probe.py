"""Try the first rounds of a prepared run: start it in a scratch directory and stop it after a few rounds."""

import csv
import math
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from edgefl.engine.federation.observers import DISPATCH
from edgefl.engine.records import OUT_OF_COVERAGE, Round
from edgefl.errors import EdgeflError
from edgefl.learning import memory
from edgefl.run.plan import RunPlan
from edgefl.run.probe_size import PROBE_ROUNDS, parts_of_waves, rounds_of_each, selects
from edgefl.run.progress import three_digits
from edgefl.run.simulation import carry_out

MOST_ROUNDS = 50  # number of rounds per server after which a probe no longer waits for slower federations
TRAINED_S = 20.0  # wall time after which further waves are not worth their training
ROUND = ("cell", "session", "phase", "round")  # columns that identify a round
PROBE_WALL_S = 120.0  # maximum wall time from the end of a probe's first round to its stop


@dataclass(frozen=True)
class Probe:
    """Measurements of a run's first rounds.

    Attributes:
        rounds: how many rounds the probe ran. latency_s: mean simulated latency of a round.
        energy_j: mean energy of all devices in a round. energy_rounds: number of rounds in `energy_j`.
        open_j: energy in `energy_j` of radio tails that run when the probe stops; later rounds may cut them short.
        participants: mean number of participants in the same rounds.
        each: how many rounds the probe ran of each server, on average.
        connecting_s: time by which access takes longer in a server's first round, in which devices connect, than in
            later rounds; 0 if they connect in later rounds, too.
        gradual: whether devices connect and begin to work in several rounds, as rounds overlap or leave out devices;
            connecting_s is then the time by which the first half of the rounds took longer than the second half.
        later_j: mean energy of a round after the server's first one or, if `gradual`, of the second half, without
            radio tails; NaN if there was none.
        without_link: the most devices of a cell that had no link when a round began.
        start_wall_s: wall time until the first round of each federation begins. round_wall_s: wall time per round
            after that, including the time between rounds.
        memory_bytes: peak resident memory of the probe's process. round_bytes: bytes of tables and journal per round.
        cut_short: whether the probe stopped early for lack of time.
        by_federation: the same of each federation that has had rounds, if there are several.
    """

    rounds: int
    latency_s: float
    start_wall_s: float
    round_wall_s: float
    memory_bytes: float
    round_bytes: float
    energy_j: float = 0.0
    energy_rounds: int = 0
    open_j: float = 0.0
    participants: float = math.nan
    each: float = PROBE_ROUNDS
    connecting_s: float = 0.0
    gradual: bool = False
    later_j: float = math.nan
    without_link: int = 0
    cut_short: bool = False
    by_federation: Mapping[str, "Probe"] = field(default_factory=dict)

    def of(self, federation: str) -> "Probe":
        """Return the measurements of one federation, or of all together if they have not been told apart."""
        return self.by_federation.get(federation, self)

    @property
    def later_s(self) -> float:
        """Mean simulated latency of a round in which devices are already connected."""
        return self.latency_s - self.connecting_s / self.each

    @property
    def energy(self) -> str:
        """The mean energy of a round in J; the least and the most if tails are still running."""
        bounds = (self.energy_j - self.open_j, self.energy_j)
        return " to ".join(dict.fromkeys(map(three_digits, bounds)))

    def words(self, federation: str = "") -> str:
        """Describe the mean time and energy of a federation's round, with the rounds that each is averaged over."""
        if federation:
            known = self.by_federation.get(federation)
            return known.words() if known else "not measured, as no round ended in time"
        means = f"mean of the first {self.rounds} rounds" if self.rounds > 1 else "in the first round to end"
        many = f"{self.energy} J for {self.participants:.3g} participant{'s' * (self.participants != 1)}"
        if self.energy_rounds == self.rounds:
            return f"{self.latency_s:.4g} s and {many}, {means}"
        # without last rounds, whose radio tails have not ended
        first = f"the first {self.energy_rounds}" if self.energy_rounds > 1 else "the first round"
        tails = "without and with running tails" if self.open_j else "whose radio tails have ended"
        return f"{self.latency_s:.4g} s ({means}) and {many} ({first}, {tails})"


UNTRIED = Probe(0, math.nan, math.nan, math.nan, math.nan, math.nan)


class _Tried(NamedTuple):
    """The first rounds of a run: their rows, and the wall time of each row since the run began, s.

    tables, devices: rows of rounds.csv and devices.csv by federation. written: bytes of tables and journal.
    """

    rows: list[Round]
    walls_s: list[float]
    tables: dict[str, list[dict[str, str]]]
    devices: dict[str, list[dict[str, str]]]
    written: int

    @property
    def lasts_s(self) -> float:
        """Wall time from the end of the first round to the end of the last."""
        return self.walls_s[-1] - self.walls_s[0]

    def suffices(self, rounds: int, parts: int) -> bool:
        """Return whether there are as many rounds, and in them as many participations."""
        return len(self.rows) >= rounds and sum(one.participants for one in self.rows) >= parts

    def saw_all(self, federations: int, number: int) -> bool:
        """Return whether each federation has had a round of this number in every cell with rounds, or many had more.

        A row does not name its federation, but the federations of a cell number their rounds alike.
        """
        those = Counter(row.cell for row in self.rows if (row.session, row.round) == (1, number))
        cells = {row.cell for row in self.rows}
        return all(those[cell] >= federations for cell in cells) or (
            len(self.rows) >= MOST_ROUNDS * federations * len(cells)
        )


def _tried(
    plan: RunPlan, servers: int, wanted: tuple[int, int], most_s: float, clock: Callable[[], float]
) -> _Tried:
    """Run rounds in a temporary directory until they suffice or take `most_s` of wall time.

    A first round of each server takes place in any case.
    """
    tried, began_s = _Tried([], [], {}, {}, 0), clock()
    federations, number = len(plan.learners), rounds_of_each(plan)

    class ProbeEnds(Exception):
        pass

    def note(row: Round) -> None:
        tried.rows.append(row)
        tried.walls_s.append(clock() - began_s)
        # do not stop between first rounds that end at the same time
        all_began = len(tried.rows) >= servers or row.end_s > tried.rows[0].end_s
        enough = tried.suffices(*wanted) and (federations == 1 or tried.saw_all(federations, number))
        trained = plan.training is not None and len(tried.rows) >= wanted[0] and tried.lasts_s >= TRAINED_S
        if enough or trained or (all_began and tried.lasts_s >= most_s):
            raise ProbeEnds

    with tempfile.TemporaryDirectory(prefix="edgefl-probe-") as scratch:
        run = Path(scratch) / "run"
        with suppress(ProbeEnds):
            carry_out(plan, run, on_round=note)
        return tried._replace(
            tables=_rows_of(run, "rounds.csv"),
            devices=_rows_of(run, "devices.csv"),
            written=sum(file.stat().st_size for file in run.rglob("*") if file.suffix in (".csv", ".jsonl")),
        )


def probe(
    plan: RunPlan, *, most_s: float = PROBE_WALL_S, clock: Callable[[], float] = time.perf_counter
) -> Probe:
    """Execute the first rounds of a plan in a temporary directory; the plan cannot be executed again.

    Args:
        most_s: maximum wall time from the end of the probe's first round to the probe's stop.
        clock: function that returns the wall time, s.

    Raises:
        EdgeflError: the run has no round.
    """
    servers = len(plan.world.served) * len(plan.learners)
    wanted = PROBE_ROUNDS * servers, parts_of_waves(plan)
    tried = _tried(plan, servers, wanted, most_s, clock)
    rows, walls_s, tables = tried.rows, tried.walls_s, tried.tables
    if not rows:
        raise EdgeflError(
            "no round takes place in this run, so its time and energy cannot be measured: see the notes of"
            " `edgefl validate`, without --plan, on devices outside the cells",
            ("devices",),
        )
    first = min(servers, len(rows) - 1)  # number of rounds that began at time 0
    round_wall_s = (walls_s[-1] - walls_s[first - 1]) / (len(rows) - first) if first else walls_s[-1]
    whole = Probe(
        **_simulated(tried, list(tables), plan),
        start_wall_s=plan.took_s + max(0.0, walls_s[-1] - len(rows) * round_wall_s),
        round_wall_s=round_wall_s,
        memory_bytes=memory.peak_bytes(),
        round_bytes=tried.written / len(rows),
        cut_short=not tried.suffices(*wanted) and tried.lasts_s >= most_s,
    )
    each = [name for name in tables if tables[name]] if len(tables) > 1 else []
    return replace(
        whole, by_federation={name: replace(whole, **_simulated(tried, [name], plan)) for name in each}
    )


def _simulated(tried: _Tried, federations: Sequence[str], plan: RunPlan) -> dict[str, Any]:
    """Return the attributes of a `Probe` that some federations' rounds determine, in simulated time and joules."""
    tables = [tried.tables[name] for name in federations]
    devices = [tried.devices.get(name, []) for name in federations]
    rows = sorted((row for table in tables for row in table), key=lambda row: float(row["end_s"]))
    cells = len(plan.world.served)
    servers = cells * len(tables)
    tails_s = (sum(lasts_s for lasts_s, _ in one.tail) for one in plan.world.fleet.draws())
    running = _Running(devices, tried.rows[-1].end_s - max(tails_s, default=0.0))
    energies_j, open_j, participants = _round_energies(tables, running, cells)
    latencies_s, access = [float(row["latency_s"]) for row in rows], plan.world.scenario.radio.access
    worlds = [plan.world.by_federation[each] for each in federations]
    rules = [(one.sections.rounds, one.members_count) for one in worlds]
    gradual = any(own.overlap or selects(own, members, cells) for own, members in rules)
    # the number of rounds after which all devices have connected and are at work
    began = len(rows) // 2 if gradual else servers
    connecting_s, later_j = 0.0, math.nan
    if len(rows) >= PROBE_ROUNDS * servers:  # every server has had its first round and another round
        spent_j = [float(row["energy_j"]) - float(row["energy_tail_j"]) for row in rows[began:]]
        first_s, later_s = latencies_s[:began], latencies_s[began:]
        later_j = float(np.mean(spent_j))
        if gradual:
            connecting_s = max(0.0, (sum(first_s) - began * float(np.mean(later_s))) / servers)
        elif access is not None:
            connecting_s = _connecting_s(devices, (first_s, later_s), access.setup_s)
    return {
        "rounds": len(rows),
        "latency_s": float(np.mean(latencies_s)),
        "energy_j": float(np.mean(energies_j)),
        "energy_rounds": len(energies_j),
        "open_j": open_j / len(energies_j),
        "participants": float(np.mean(participants)),
        "each": len(rows) / servers,
        "connecting_s": connecting_s,
        "gradual": gradual,
        "later_j": later_j,
        "without_link": max((int(row.get(OUT_OF_COVERAGE) or 0) for row in rows), default=0),
    }


def _rows_of(run: Path, file: str) -> dict[str, list[dict[str, str]]]:
    """Return federation -> rows of a table; a single federation is ''."""
    rows = {}
    for table in sorted(run.rglob(file)):
        with table.open(encoding="utf-8", newline="") as opened:
            rows["" if table.parent == run else table.parent.name] = list(csv.DictReader(opened))
    return rows


def _connecting_s(
    devices: Sequence[Sequence[Mapping[str, str]]],
    by_latency: tuple[list[float], list[float]],
    setup_s: float,
) -> float:
    """Return how much longer access takes in a server's first round than later; 0 if devices do not connect then.

    Args:
        devices: rows of devices.csv of each federation. by_latency: latencies of the servers' first rounds and of
            later rounds, in place of access times without these rows. setup_s: time to connect.
    """
    first_s, later_s = _accesses(devices)
    if not (first_s and later_s):
        first_s, later_s = by_latency
    longer_s = min(float(np.mean(first_s) - np.mean(later_s)), setup_s)
    # smaller differences come from other waits, for a cycle of sleep or for slow start
    return longer_s if longer_s > setup_s / 2 else 0.0


def _accesses(tables: Sequence[Sequence[Mapping[str, str]]]) -> tuple[list[float], list[float]]:
    """Return the access times of devices in each server's first round, or first dispatch, and in later ones."""
    first_s, later_s = list[float](), list[float]()
    for rows in tables:
        first: dict[str, tuple[str, ...]] = {}  # cell -> its first round or dispatch
        for row in rows:
            number = row["session"], row["phase"], row.get(DISPATCH) or row["round"]
            into = first_s if first.setdefault(row["cell"], number) == number else later_s
            into.append(float(row["access_s"]))
    return first_s, later_s


class _Running(NamedTuple):
    """The tails that may run when a probe stops: those since `since_s` that no later transfer has ended.

    devices: rows of devices.csv of each federation; without rows, all tails may be running.
    """

    devices: Sequence[Sequence[Mapping[str, str]]]
    since_s: float

    def of(self, federation: int, rounds: Sequence[Mapping[str, str]]) -> float:
        """Return the energy of these tails in some rounds of a federation."""
        if not self.devices[federation]:
            return math.fsum(float(row["energy_tail_j"]) for row in rounds)
        some = {tuple(map(row.get, ROUND)) for row in rounds}
        last = {row["device"]: row for row in self.devices[federation]}.values()
        return math.fsum(
            float(row["energy_tail_j"])
            for row in last
            if tuple(map(row.get, ROUND)) in some
            and float(row["uplink_end_s"] or row["downlink_end_s"] or math.inf) > self.since_s
        )


def _round_energies(
    tables: Sequence[Sequence[Mapping[str, str]]], running: _Running, cells: int
) -> tuple[list[float], float, list[int]]:
    """Return each round's energy, the energy of the tails that may be shorter, and each round's participants.

    With radio tails, each server's last round is left out, since no later round cuts its tails short.

    Args:
        tables: the rounds of each federation. cells: the cells with a server.
    """
    energies_j, participants, open_j = list[float](), list[int](), 0.0
    for federation, rows in enumerate(tables):
        counted = rows[:-cells] if any(float(row["energy_tail_j"]) for row in rows) else rows
        counted = counted or rows
        energies_j += [float(row["energy_j"]) for row in counted]
        participants += [int(row["participants"]) for row in counted]
        open_j += running.of(federation, counted)
    return energies_j, open_j, participants
