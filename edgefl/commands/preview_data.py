"""Collect the data of `edgefl preview`: the world at the start, devices' tracks, and a few rounds without training.

Devices move as in the run. To count handovers, the network runs without rounds for WALK_S seconds of processor time.
Times and joules are measured by a probe (`edgefl.run.probe`) without training.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Any

import numpy as np

from edgefl.analysis.figures.map import points_of
from edgefl.analysis.page.formatting import count_of
from edgefl.analysis.runs.clock import Clock as RunClock
from edgefl.analysis.runs.clock import clock_from
from edgefl.analysis.runs.places import Ground, ground_of
from edgefl.analysis.runs.scenario_keys import flat
from edgefl.channel.units import db_to_linear
from edgefl.engine.air.budget import carriers_of
from edgefl.engine.air.gains import SpatialGains
from edgefl.engine.cells.network import Network
from edgefl.engine.clock import Clock
from edgefl.engine.records import Event, EventName, Nowhere
from edgefl.engine.sessions import TimedPolicy
from edgefl.run.composition import compose
from edgefl.run.forecast import Forecast, forecast_of
from edgefl.run.handover_notes import more_handovers_than_borders
from edgefl.run.plan import RunPlan, prepare
from edgefl.run.probe import Probe, probe
from edgefl.run.progress import simulated_time, wall_time
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.scenario import Scenario, written
from edgefl.scenario.world import World

PLAN = "{plan}"  # placeholder for the command or call that plans the run
PROBE_S = 1.5  # processor time of the probe, s
WALK_S = 1.0  # processor time of the walk, s
TIMES = 150  # number of times at which the devices of each cell are counted
WAYS = 20  # maximum number of positions of a device between two counts
WAY_S = 5.0  # minimum time between two positions of a device
MOST_PLACES = 3_000_000  # maximum number of positions of all devices together
GRID = 110  # number of points along each side of the map
MOST_SESSIONS = 8  # maximum number of sessions with labels in the picture
OPEN_END_S = 3600.0  # time that is shown if a run has no foreseeable end
MOST_SWITCHES = 1_000_000  # maximum number of switching times of all devices together


@dataclass(frozen=True)
class Preview:
    """Facts about a scenario that are known before it runs.

    Attributes:
        forecast: the forecast of the run without training.
        ground: the map's cells, areas and streets. clock: the run's hours of the day.
        times_s: [times] times of `tracks_m`. tracks_m: [times, devices, 2] positions, NaN while a device is absent.
        counted_s: [counts] times of the counts. population: [counts, cells] number of switched-on devices.
            serving: [devices] each device's strongest cell at the start, NaN if there is no such cell.
        handovers_m: [n, 2] positions of handovers. borders: how often devices crossed a border between cells.
            walked_s: time over which handovers and crossed borders were counted.
        snr_db: [GRID, GRID] SNR of the strongest cell, NaN outside all cells. reach_m: half the map's side.
        mix: session -> label -> total number of samples with this label over all devices.
    """

    forecast: Forecast
    world: World = field(repr=False)
    ground: Ground = field(repr=False)
    clock: RunClock
    times_s: np.ndarray
    tracks_m: np.ndarray
    counted_s: np.ndarray
    population: np.ndarray
    serving: np.ndarray
    handovers_m: np.ndarray
    borders: int
    walked_s: float
    snr_db: np.ndarray
    reach_m: float
    mix: Mapping[int, Mapping[int, int]]
    notes: Sequence[str]

    @property
    def handovers_per_hour(self) -> float:
        """Number of handovers per hour, summed over all devices."""
        return len(self.handovers_m) / (self.walked_s / 3600) if self.walked_s else 0.0

    @property
    def handovers_per_device_hour(self) -> float:
        """Number of handovers per hour of service, in which a device is in the cells and switched on."""
        devices, at_s = self.population.sum(axis=1), np.minimum(self.counted_s, self.walked_s)
        service_s = float(((devices[1:] + devices[:-1]) / 2 * np.diff(at_s)).sum())
        return len(self.handovers_m) / (service_s / 3600) if service_s else 0.0

    def carried(self, snr_db: np.ndarray) -> np.ndarray:
        """Return the payload rate of a downlink slot, in bit/s/Hz, at an SNR in dB."""
        carrier = carriers_of(self.world.scenario.radio)["downlink"]
        return np.asarray(carrier.efficiency(db_to_linear(snr_db)) * carrier.goodput)

    @property
    def walked(self) -> str:
        """The span in which handovers are counted, in words: walking a whole day would take too long."""
        return f"{'over' if self.walked_s >= self.times_s[-1] else 'in the first'} {simulated_time(self.walked_s)}"

    def lines(self, plan: str) -> list[str]:
        """Return the preview as a few lines of text; `plan` is the command that estimates the time of training."""
        strong = self.snr_db[np.isfinite(self.snr_db)]
        low, middle, high = np.percentile(strong, [10, 50, 90]) if len(strong) else (math.nan,) * 3
        forecast, probe = self.forecast, self.forecast.probe
        fewer = " (codecs would send fewer)" * forecast.coded
        costs = [
            f"{f'a round of {name}' if name else 'a round':15} {probe.words(name)}; {forecast.transfer(name)} per"
            f" transfer{fewer}"
            for name in forecast.payload_bits
        ]
        less = " (less with the codecs)" * forecast.coded
        guess = "" if forecast.ends_by_the_clock else f", roughly{less}"
        lines = [
            f"devices         {forecast.devices} in {forecast.where}",
            f"simulated time  {forecast.simulated_s.text(simulated_time)}{guess}",
            *costs,
            f"SNR             {low:.0f} to {high:.0f} dB in 80 % of places, median {middle:.0f} dB",
        ][: None if len(strong) else -1]
        if self.world.scenario.layout.several:
            each = f"{self.handovers_per_hour:,.0f} per hour {self.walked}, "
            each += f"{self.handovers_per_device_hour:,.1f} per device and hour of service"
            each += f", {len(self.handovers_m) / self.borders:.2g} per border crossed" if self.borders else ""
            lines.insert(2, f"handovers       {each}")
        trains = f"is mostly training: {PLAN} trains a few rounds to estimate it"
        roughly = f"{forecast.wall_s.text(wall_time)}, roughly"
        lines.append(f"wall time       {trains if self.world.scenario.trains else roughly}")
        lines += [f"note: {note}" for note in self.notes]
        return [line.replace(PLAN, plan) for line in lines]


def make_preview(scenario: Scenario, device: str = "auto", *, most_s: float = PROBE_S) -> Preview:
    """Preview a scenario without downloading anything or writing outside a scratch directory.

    Args:
        device: name of the torch device, as in `simulate`.
        most_s: maximum processor time of the probe.

    Raises:
        EdgeflError: the run would be refused.
    """
    run = prepare(scenario, device=device, threads=1, load=Loaded(download=False), sizes_only=True)
    seen = probe(run.untrained(), most_s=most_s, clock=time.process_time)
    forecast, world = forecast_of(run, seen), run.world
    end_s = forecast.simulated_s.most
    span_s = end_s if math.isfinite(end_s) else OPEN_END_S
    ways = int(np.clip(min(span_s / TIMES / WAY_S, MOST_PLACES / TIMES / world.count), 1, WAYS))
    every = ways if world.movement.moves else 1
    times_s = np.linspace(0.0, span_s, every * (TIMES - 1) + 1)
    counted_s = times_s[::every]
    on = _switched_on(world, counted_s)
    tracks_m, population, serving = _tracks(world, times_s, every, on)
    handovers_m, borders, walked_s = _walk(world.rehearsal(), span_s)
    keys = written(scenario)
    ground = ground_of(keys, world.places.drawing())
    reach_m = _reach_m(world, ground, tracks_m)
    return Preview(
        forecast=forecast,
        world=world,
        ground=ground,
        clock=clock_from(flat(keys)),
        times_s=times_s,
        tracks_m=tracks_m,
        counted_s=counted_s,
        population=population,
        serving=serving,
        handovers_m=handovers_m,
        borders=borders,
        walked_s=walked_s,
        snr_db=_snr_db(world, reach_m),
        reach_m=reach_m,
        mix=_mix(run, _sessions(forecast)),
        notes=[
            *forecast.notes,
            *more_handovers_than_borders(world, len(handovers_m), borders),
            *_limits(world, seen, forecast, switching=on is not None),
        ],
    )


def _limits(world: World, seen: Probe, forecast: Forecast, *, switching: bool) -> list[str]:
    """Return notes on what the preview leaves out; `switching`: whether it shows that devices switch on and off."""
    tails = " plus radio tails" * (seen.energy_rounds < seen.rounds)
    later = f"{seen.later_s:.3g} s and {seen.later_j:.3g} J{tails}"
    several, neighbours = world.scenario.layout.several, world.scenario.radio.neighbour_load > 0
    slow = f"round includes {seen.connecting_s:.2g} s of connecting, and its joules"
    if seen.gradual:
        slow = f"{seen.rounds // 2} rounds take {seen.connecting_s:.2g} s longer together, as devices connect"
    limits = {
        f"a round's time and energy are means over the first {seen.rounds} rounds to end, and later ones may"
        f" differ; more rounds would have taken too long to measure, but {PLAN} includes them": seen.cut_short,
        f"the first {slow}; later rounds take {later}": seen.connecting_s > 0 and not seen.by_federation,
        f"{'up to ' * several}{count_of(seen.without_link, 'device')}{' of a cell' * several} had no link when a"
        " round began, and took no part in it": seen.without_link > 0,
        "devices switch on and off too often to be shown: the picture shows all as switched on": not switching,
        f"the run has no foreseeable end: the first {OPEN_END_S:g} s are shown": math.isinf(
            forecast.simulated_s.most
        ),
        "the SNR map leaves out neighbours' interference (radio.neighbour_load)": neighbours,
        "the SNR map shows outdoor SNR: devices indoors also have penetration loss (devices.indoor_share)": any(
            kind.indoor_share for kind in world.fleet.kinds
        ),
    }
    return [note for note, holds in limits.items() if holds]


def _reach_m(world: World, ground: Ground, tracks_m: np.ndarray) -> float:
    """Return half the side, m, of a square map that contains the cells, tracks, sites, areas and streets."""
    shown_m = max(float(np.abs(points_of(ground)).max()), float(np.nanmax(np.abs(tracks_m), initial=1.0)))
    if world.scenario.layout.sites is None:
        return max(world.extent.radius_m, 1.02 * shown_m)
    return max(float(np.abs(world.sites_m).max()) + 60.0, 1.05 * shown_m)


def _switched_on(world: World, times_s: np.ndarray) -> np.ndarray | None:
    """Return whether each device is switched on, bool [times, devices]; None if devices switch too often to count."""
    on = np.ones((len(times_s), world.count), bool)
    for device, switches in enumerate(world.fleet.switches(world.streams)):
        until = takewhile(lambda time_s: time_s <= times_s[-1], switches)
        at_s = np.fromiter(islice(until, MOST_SWITCHES // world.count), float)
        if len(at_s) == MOST_SWITCHES // world.count:
            return None
        on[:, device] = np.searchsorted(at_s, times_s, side="right") % 2 == 1
    return on


def _tracks(
    world: World, times_s: np.ndarray, every: int, on: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return tracks [times, devices, 2], device counts [counts, cells], and each device's first cell [devices]."""
    tracks_m = np.array([np.array(world.movement.positions_m(float(time_s)), float) for time_s in times_s])
    within = np.hypot(tracks_m[..., 0], tracks_m[..., 1]) <= world.extent.edge_m  # False if absent (NaN)
    if world.scenario.layout.several:
        tracks_m[~within] = np.nan
    population = []
    for number, inside in enumerate(
        map(np.flatnonzero, within[::every] if on is None else within[::every] & on)
    ):
        cells = _cells(world, float(times_s[every * number]), tracks_m[every * number], inside)
        population.append(np.bincount(cells[cells >= 0], minlength=world.scenario.layout.cells))
        if not number:
            serving = np.full(world.count, np.nan)
            serving[inside] = np.where(cells < 0, np.nan, cells)
    return tracks_m, np.array(population), serving


def _cells(world: World, time_s: float, places_m: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """Return the strongest cell [inside] of each device inside the world; -1 if no cell reaches it."""
    gains = world.gains
    if not len(inside):
        return np.zeros(0, int)
    if world.measured is not None:
        return np.asarray(world.measured.cells_at(inside.tolist(), time_s))
    if world.scenario.layout.several and isinstance(gains, SpatialGains):
        power_db = gains.power_db_of(places_m[inside], inside)
        return np.where(np.isfinite(power_db.max(axis=1)), power_db.argmax(axis=1), -1)
    return np.zeros(len(inside), int)


class _Handovers(Nowhere):
    """A recorder that collects the positions of handovers; it receives handovers as columns.

    Attributes:
        network: the network of the devices, set before the first event.
        places_m: [[n, 2], ...] positions of the devices of each event, at the time of the event.
    """

    network: Network

    def __init__(self) -> None:
        self.places_m: list[np.ndarray] = [np.empty((0, 2))]

    def write_columns(self, row_type: type, *, further: Any = None, **columns: Any) -> None:
        if row_type is Event and columns["event"] == EventName.HANDOVER:
            self.places_m.append(self.network.positions_m()[np.atleast_1d(columns["device"])])


def _walk(world: World, span_s: float) -> tuple[np.ndarray, int, float]:
    """Run the network without rounds; return handover positions [n, 2], number of border crossings, and seconds."""
    if not (world.scenario.layout.several and world.movement.moves):
        return np.empty((0, 2)), 0, span_s
    events = _Handovers()
    simulation, _ = compose(world, world.radio(Clock()), events, {})
    events.network = simulation.network
    began_s, time_s = time.process_time(), 0.0
    step_s = max(world.scenario.handover.measurement_interval_s, span_s / 2000)
    while time_s < span_s and time.process_time() - began_s < WALK_S:
        time_s = min(span_s, time_s + step_s)
        simulation.env.run(until=time_s)
    borders = simulation.network.borders
    return np.concatenate(events.places_m), borders.crossed if borders else 0, time_s


def _snr_db(world: World, reach_m: float) -> np.ndarray:
    """Return the SNR in dB [GRID, GRID] of the strongest cell over the whole band, without fading; NaN outside."""
    radio, extent = world.scenario.radio, world.extent
    axis = np.linspace(-reach_m, reach_m, GRID)
    points_m = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    distances_m = np.hypot(*points_m.T)
    gains_db = np.full(len(points_m), np.nan)
    if world.measured is not None:
        return gains_db.reshape(GRID, GRID)  # no map: measured rates do not depend on positions
    if isinstance(world.gains, SpatialGains):
        inside = np.flatnonzero(distances_m <= min(extent.field_radius_m, extent.edge_m))
        gains_db[inside] = world.gains.power_db_of(points_m[inside], np.zeros(len(inside), int)).max(axis=1)
    else:
        inside = np.flatnonzero(distances_m <= extent.radius_m)
        gains_db[inside] = -radio.path_loss.path_loss_db(
            np.maximum(distances_m[inside], extent.min_distance_m),
            carrier_hz=radio.carrier_hz,
            bs_height_m=extent.bs_height_m,
            ut_height_m=extent.ut_height_m,
            line_of_sight=radio.propagation.line_of_sight == "always",
        )
    noise_dbm = radio.budget.noise_dbm_hz + 10 * math.log10(radio.bandwidth_hz) + radio.budget.noise_figure_db
    snr_db = radio.budget.server_power_dbm + gains_db - noise_dbm - radio.budget.interference_margin_db
    snr_db[np.isneginf(snr_db)] = np.nan  # these places are out of range of all sites
    return np.asarray(snr_db).reshape(GRID, GRID)


def _sessions(forecast: Forecast) -> int:
    """Return the smallest number of sessions that any cell has, up to MOST_SESSIONS."""
    scenario, policy = forecast.scenario, forecast.scenario.sessions
    if isinstance(policy, TimedPolicy):
        begins_s, end_s = [0.0], forecast.simulated_s.most
        while len(begins_s) < MOST_SESSIONS and (begin_s := policy.until_s(begins_s[-1])) < end_s:
            begins_s.append(begin_s)
        made = len(begins_s)
    else:
        rounds = forecast.rounds.least / len(scenario.layout.served)
        made = math.ceil(min(rounds / (policy.longest or math.inf), MOST_SESSIONS))
    return max(1, min(made, policy.count or MOST_SESSIONS, MOST_SESSIONS))


def _mix(run: RunPlan, sessions: int) -> dict[int, dict[int, int]]:
    """Count each label's samples over all devices, by session; empty if there are several federations."""
    scenario = run.world.scenario
    if scenario.learning is None or scenario.federations:
        return {}
    device_data, mix = run.learner.device_data, {}
    for session in range(1, sessions + 1):
        device_data.deal(session)
        mix[session] = device_data.mix(list(run.world.members(session) or range(run.world.count)))
    return mix
