"""What a scenario looks like before it runs, in seconds: its world, who goes where, a few rounds without training.

Devices move as in the run. The network is run for as long as WALK_S of processor time allow, without any round:
that gives handovers. Times, joules and the radio's wall time are those of PROBE_ROUNDS rounds in which nothing is
trained; the wall time of training is its FLOPs over the speed of this machine, so a rough figure:
`edgefl validate --plan` trains two rounds and measures.
"""

import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice, takewhile
from pathlib import Path
from typing import Any

import numpy as np
import simpy

from edgefl.engine.gains import PerPlace
from edgefl.engine.records import Event, EventName, Round
from edgefl.engine.settings import WorkloadSettings
from edgefl.learners.building import available_cores
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.run.plan import RunPlan, prepare
from edgefl.run.preview import Loaded
from edgefl.run.progress import wall_time
from edgefl.run.simulation import simulate
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.studies.forecast import Probe, Range, expected

PROBE_ROUNDS = 2  # of each federation, in the mean
PROBE_S = 1.5  # processor time
WALK_S = 1.0  # processor time
TIMES = 150  # at which tracks are looked at
GRID = 110  # points across the map
MOST_SESSIONS = 8  # whose labels are shown
OPEN_END_S = 3600.0  # looked at where a run has no foreseeable end
MOST_SWITCHES = 1_000_000  # of all devices together
PRODUCTS = 20  # of matrices, that are timed together
SPEED_SHARE = 0.1  # of the speed at products of large matrices, that training with its evaluation reaches


@dataclass(frozen=True)
class Outlook:
    """A scenario before it runs.

    Attributes:
        times_s: [times]. tracks_m: [times, devices, 2], NaN: absent. population: [times, cells], switched on.
        handovers_m: [n, 2] where devices handed over. walked_s: over which these were counted.
        snr_db: [GRID, GRID] of the strongest cell at a distance from all, NaN: outside. reach_m: half the map's side.
        efficiency_cap: bit/s/Hz; None: none.
        mix: session -> label -> samples that all devices hold.
        latency_s, energy_j: of a round, the mean. wall_s: of the run.
    """

    world: World = field(repr=False)
    times_s: np.ndarray
    tracks_m: np.ndarray
    population: np.ndarray
    handovers_m: np.ndarray
    walked_s: float
    snr_db: np.ndarray
    reach_m: float
    mix: Mapping[int, Mapping[int, int]]
    latency_s: float
    energy_j: float
    simulated_s: Range
    wall_s: Range
    payload_bits: int
    notes: Sequence[str]

    @property
    def handovers_per_hour(self) -> float:
        """Of all devices together."""
        return len(self.handovers_m) / (self.walked_s / 3600) if self.walked_s else 0.0

    def lines(self) -> list[str]:
        """Say it in a few lines."""
        layout = self.world.scenario.layout
        cells = (
            f"{layout.cells} cells, {len(layout.with_federation)} with a server"
            if layout.cells > 1
            else "one cell"
        )
        strong = self.snr_db[np.isfinite(self.snr_db)]
        low, middle, high = np.percentile(strong, [10, 50, 90])
        found = [
            f"devices         {self.world.count} in {cells}",
            f"simulated time  {_span(self.simulated_s, '{:,.4g} s'.format)}",
            f"a round         {self.latency_s:.4g} s and {self.energy_j:.3g} J of the devices, "
            f"{self.payload_bits / 1e6:.3g} Mbit a transfer",
            f"SNR             {low:.0f} to {high:.0f} dB in four places of five, median {middle:.0f} dB",
            f"wall time       {_span(self.wall_s, wall_time)}, very roughly; `edgefl validate --plan` measures it",
        ]
        if layout.several:
            rate = self.handovers_per_hour
            told = f"{rate:,.0f} per hour, {rate / self.world.count:,.1f} of a device"
            found.insert(2, f"handovers       {told} (over {self.walked_s:,.4g} s)")
        return found + [f"note: {note}" for note in self.notes]


def look(scenario: Scenario, device: str = "auto") -> Outlook:
    """Look at a scenario; nothing is trained, downloaded, or written but in a scratch directory.

    Raises:
        EdgeflError: the run would be refused.
    """
    run = prepare(scenario, device=device, threads=1, load=Loaded(download=False), in_outline=True)
    first = next(iter(run.learners.values()))
    rows, radio_s, cut_short = _probe(_untrained(scenario, first.payload_bits, first.flops_per_sample))
    round_wall_s = radio_s + _training_s(run, rows)
    plan = expected(
        scenario,
        Probe(
            len(run.learners), len(rows), float(np.mean([r.latency_s for r in rows])), 2.0, round_wall_s, 0, 0
        ),
    )
    span_s = plan.simulated_s.most if math.isfinite(plan.simulated_s.most) else OPEN_END_S
    world = World(scenario, Streams(scenario.seed))  # movement goes on only: each look begins anew
    times_s = np.linspace(0.0, span_s, TIMES)
    on = _switched_on(world, times_s)
    tracks_m, population = _tracks(world, times_s, on)
    handovers_m, walked_s = _walk(World(scenario, Streams(scenario.seed)), span_s)
    reach_m = max(world.extent.radius_m, 1.02 * float(np.nanmax(np.abs(tracks_m), initial=0.0)))
    if scenario.layout.sites is not None:
        reach_m = max(
            np.abs(world.sites_m).max() + 60.0, 1.05 * float(np.nanmax(np.abs(tracks_m), initial=1.0))
        )
    notes = list(run.notes)
    if cut_short:
        notes.append(
            f"time and joules of a round are of the first {len(rows)} to end, and quick ones end first; more would"
            " have taken too long: `edgefl validate --plan` sees them"
        )
    if on is None:
        notes.append("devices switch too often to be shown: the picture has all as if they were on")
    if not math.isfinite(plan.simulated_s.most):
        notes.append(f"the run has no end that could be foreseen: the first {OPEN_END_S:g} s are shown")
    if walked_s < span_s:
        notes.append(f"handovers are those of the first {walked_s:,.4g} s: more would have taken too long")
    if scenario.radio.neighbour_load:
        notes.append("the map of SNR is without what the neighbours send (radio.neighbour_load)")
    return Outlook(
        world=run.world,
        times_s=times_s,
        tracks_m=tracks_m,
        population=population,
        handovers_m=handovers_m,
        walked_s=walked_s,
        snr_db=_snr_db(world, reach_m),
        reach_m=reach_m,
        mix=_mix(run),
        latency_s=plan.probe.latency_s,
        energy_j=float(np.mean([row.energy_j for row in rows])),
        simulated_s=plan.simulated_s,
        wall_s=plan.wall_s,
        payload_bits=first.payload_bits,
        notes=notes,
    )


def _untrained(scenario: Scenario, payload_bits: int, flops_per_sample: float) -> Scenario:
    """The same scenario with the bits and FLOPs of its learning, and nothing learned."""
    learning = scenario.learning
    if learning is None:
        return scenario
    task = WorkloadSettings(
        payload_bits=payload_bits,
        flops_per_sample=flops_per_sample,
        steps=learning.steps,
        batch=learning.batch,
    )
    changes: dict[str, Any] = {"learning": None, "workload": task}
    if scenario.sessions.report_bits:  # it waits for losses, which nobody has
        from edgefl.engine.sessions.schedule import Schedule

        changes["sessions"] = Schedule(count=1, rounds=10 * PROBE_ROUNDS)
    return scenario.model_copy(update=changes)


def _probe(scenario: Scenario) -> tuple[list[Round], float, bool]:
    """The first rounds, in a scratch directory; the wall time of one, the start apart; and whether time was up."""
    rows: list[Round] = []
    walls_s: list[float] = []  # processor time, which others on this machine do not lengthen
    wanted = PROBE_ROUNDS * len(scenario.layout.with_federation)

    class Enough(Exception):
        pass

    began_s, time_is_up = time.process_time(), False

    def note(row: Round) -> None:
        rows.append(row)
        walls_s.append(time.process_time())
        nonlocal time_is_up
        time_is_up = time.process_time() - began_s > PROBE_S
        if len(rows) >= wanted or time_is_up:
            raise Enough

    with tempfile.TemporaryDirectory(prefix="edgefl-preview-") as scratch, suppress(Enough):
        simulate(scenario, Path(scratch) / "run", on_round=note)
    alone = walls_s[0] - began_s if len(rows) == 1 else (walls_s[-1] - walls_s[0]) / (len(rows) - 1)
    return rows, alone, len(rows) < wanted and time_is_up


def _training_s(run: RunPlan, rows: Sequence[Round]) -> float:
    """Wall time of training a round: its FLOPs over the speed of this machine's processor."""
    learning = run.world.scenario.learning
    if learning is None:
        return 0.0
    side, best_s = 64, math.inf  # so small that one thread does it
    one = np.ones((side, side), np.float32)
    for _ in range(30):  # processor time, and the best of them: others are at work on this machine, too
        began_s = time.thread_time()
        for _ in range(PRODUCTS):
            one @ one
        best_s = min(best_s, time.thread_time() - began_s)
    flops_s = PRODUCTS * 2 * side**3 / best_s
    first = next(iter(run.learners.values()))
    samples = np.mean([row.participants for row in rows]) * learning.steps * learning.batch
    return float(samples * first.flops_per_sample / (SPEED_SHARE * flops_s * min(2, available_cores())))


def _switched_on(world: World, times_s: np.ndarray) -> np.ndarray | None:
    """[times, devices] whether each is switched on; None: they switch too often to find out."""
    on = np.ones((len(times_s), world.count), bool)
    for device, switches in enumerate(world.fleet.switches(world.streams)):
        until = takewhile(lambda time_s: time_s <= times_s[-1], switches)
        at_s = np.fromiter(islice(until, MOST_SWITCHES // world.count), float)
        if len(at_s) == MOST_SWITCHES // world.count:
            return None
        on[:, device] = np.searchsorted(at_s, times_s, side="right") % 2 == 1
    return on


def _tracks(world: World, times_s: np.ndarray, on: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """[times, devices, 2] where devices are, and [times, cells] how many that are on are in each cell."""
    cells, several = world.scenario.layout.cells, world.scenario.layout.several
    tracks_m = np.full((len(times_s), world.count, 2), np.nan)
    population = np.zeros((len(times_s), cells), int)
    strongest = _strongest(world)
    for number, time_s in enumerate(times_s):
        places_m = np.array(world.movement.positions_m(float(time_s)), float)
        away = ~(np.hypot(*places_m.T) <= (world.extent.edge_m if several else np.inf))
        places_m[away] = np.nan
        tracks_m[number] = places_m
        within = np.hypot(*np.nan_to_num(places_m.T, nan=np.inf)) <= world.extent.edge_m
        inside = np.flatnonzero(within if on is None else within & on[number])
        if len(inside):
            population[number] = np.bincount(strongest(places_m[inside], inside), minlength=cells)
    return tracks_m, population


def _strongest(world: World) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    gains, several = world.gains, world.scenario.layout.several

    def cells(places_m: np.ndarray, ids: np.ndarray) -> np.ndarray:
        if several and isinstance(gains, PerPlace):
            return np.asarray(gains.power_db_of(places_m, ids).argmax(axis=1))
        return np.zeros(len(ids), int)

    return cells


class _Handovers:
    """A recorder that keeps which devices handed over; they come as columns."""

    def __init__(self) -> None:
        self.devices: list[int] = []

    def write(self, *rows: Any, further: Any = None) -> None:
        pass

    def write_columns(self, row_type: type, *, further: Any = None, **columns: Any) -> None:
        if row_type is Event and columns["event"] == EventName.HANDOVER:
            self.devices += np.atleast_1d(columns["device"]).tolist()

    def flush(self) -> None:
        pass


def _walk(world: World, span_s: float) -> tuple[np.ndarray, float]:
    """Run the network without rounds: [n, 2] where devices handed over, and how long that was."""
    if not (world.scenario.layout.several and world.movement.moves):
        return np.empty((0, 2)), span_s
    events = _Handovers()
    scene, _ = compose(world, world.radio(simpy.Environment()), events, {})
    began_s, found, time_s = time.process_time(), [], 0.0
    step_s = max(world.scenario.handover.measurement_interval_s, span_s / 2000)
    while time_s < span_s and time.process_time() - began_s < WALK_S:
        time_s = min(span_s, time_s + step_s)
        scene.env.run(until=time_s)
        if events.devices:
            found += [scene.network.positions_m()[device] for device in events.devices]
            events.devices.clear()
    return np.array(found).reshape(-1, 2), time_s


def _snr_db(world: World, reach_m: float) -> np.ndarray:
    """[GRID, GRID] of a link to the strongest cell over the whole band, without fading; NaN outside the world."""
    radio, extent = world.scenario.radio, world.extent
    axis = np.linspace(-reach_m, reach_m, GRID)
    points_m = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    distances_m = np.hypot(*points_m.T)
    gains_db = np.full(len(points_m), np.nan)
    if isinstance(world.gains, PerPlace):
        inside = np.flatnonzero(distances_m <= min(extent.field_radius_m, extent.edge_m))
        gains_db[inside] = world.gains.power_db_of(points_m[inside], np.zeros(len(inside), int)).max(axis=1)
    else:
        inside = np.flatnonzero(distances_m <= extent.radius_m)
        gains_db[inside] = -radio.path_loss.path_loss_db(
            np.maximum(distances_m[inside], extent.min_distance_m),
            carrier_hz=radio.carrier_hz,
            bs_height_m=extent.bs_height_m,
            ut_height_m=extent.ut_height_m,
            line_of_sight=radio.line_of_sight == "always",
        )
    noise_dbm = radio.noise_dbm_hz + 10 * math.log10(radio.bandwidth_hz) + radio.noise_figure_db
    snr_db = radio.server_power_dbm + gains_db - noise_dbm - radio.interference_margin_db
    return np.asarray(snr_db).reshape(GRID, GRID)


def _mix(run: RunPlan) -> dict[int, dict[int, int]]:
    """Samples of each label that all devices hold, session by session."""
    scenario = run.world.scenario
    if scenario.learning is None:
        return {}
    device_data, found = next(iter(run.learners.values())).device_data, {}
    for session in range(1, min(scenario.sessions.count or MOST_SESSIONS, MOST_SESSIONS) + 1):
        device_data.deal(session)
        found[session] = device_data.mix(list(run.world.members(session) or range(run.world.count)))
    return found


def _span(values: Range, write: Callable[[float], str]) -> str:
    least, most = (write(value) if math.isfinite(value) else "any time" for value in values)
    return least if least == most else f"{least} to {most}"
