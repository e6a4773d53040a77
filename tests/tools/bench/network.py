"""Measure the speed of simulating movement, measurements, handovers and transfers, by number of devices.

The rival is the obvious SimPy program with a process per device. It uses edgefl's path loss and shadowing, and has no
transfers.
"""

import time
from collections.abc import Generator
from typing import Any

import numpy as np
import simpy

from edgefl.engine.air.gains import LargeScaleState, SpatialGains
from edgefl.engine.air.links import DIRECTIONS
from edgefl.engine.air.radio_round import Link
from edgefl.engine.cells.handover import SAMPLE_S
from edgefl.engine.records import Nowhere
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from tests.tools.bench import peak_memory_mb

SIZES = (100, 1_000, 10_000)
PERIOD_S = 60.0  # each device uploads once in this time
PAYLOAD_BITS = 10_000_000
SHARE = 0.05  # share of the 100 MHz band per transfer
RIVAL = "SimPy process per device"
RIVAL_DEVICES, RIVAL_S = 100, 20.0  # few devices, as the rival's cost per device and second is constant


def run(simulated_s: float = 3600.0, sizes: tuple[int, ...] = SIZES) -> dict[str, Any]:
    """Measure 19 cells with wrap-around, spatial shadowing, measurements every 0.2 s and renewal transfers.

    Returns:
        `rows`, one per number of devices: wall time, also per device and simulated hour, peak memory (of the
        process, so of the largest run so far), handovers, transfers completed and broken, and `ratio`: how
        many times longer the rival takes per device-hour. `rival`: its wall time and handovers.
    """
    rival = _rival()
    rows = [_row(devices, simulated_s) for devices in sizes]
    for row in rows:
        row["ratio"] = rival["wall_ms_per_device_hour"] / row["wall_ms_per_device_hour"]
    return {"simulated_s": simulated_s, "cells": 19, "rival": rival, "rows": rows}


def _scenario(devices: int) -> Scenario:
    return Scenario.model_validate(
        {
            "name": "bench",
            "seed": 1,
            "layout": {"rings": 2, "isd_m": 200},
            "devices": {"count": devices, "mobility": {"name": "random_waypoint", "area_factor": 1.0}},
            "radio": {"preset": "journal", "propagation": {"shadowing": "spatial"}, "fidelity": "renewal"},
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
            "workload": {"payload_bits": PAYLOAD_BITS, "flops_per_sample": 1},
        }
    )


def _rival() -> dict[str, Any]:
    scenario = _scenario(RIVAL_DEVICES)
    env = simpy.Environment()
    walkers = _Walkers(env, scenario)
    for device in range(RIVAL_DEVICES):
        env.process(walkers.walk(device))
    began = time.perf_counter()
    env.run(until=RIVAL_S)
    wall_s = time.perf_counter() - began
    return {
        "name": RIVAL,
        "wall_ms_per_device_hour": 1e3 * wall_s / RIVAL_DEVICES / (RIVAL_S / 3600),
        "handovers_per_device_hour": walkers.handovers / RIVAL_DEVICES / (RIVAL_S / 3600),
    }


def _row(devices: int, simulated_s: float) -> dict[str, Any]:
    scenario = _scenario(devices)
    began = time.perf_counter()
    traffic = _Traffic(scenario)
    traffic.env.run(until=simulated_s)
    wall_s = time.perf_counter() - began
    return {
        "devices": devices,
        "wall_s": wall_s,
        "wall_ms_per_device_hour": 1e3 * wall_s / devices / (simulated_s / 3600),
        "peak_memory_mb": peak_memory_mb(),
        "handovers": traffic.handovers,
        "handovers_per_device_hour": traffic.handovers / devices / (simulated_s / 3600),
        "transfers": traffic.transfers,
        "transfers_broken": traffic.broken,
    }


class _Traffic(Nowhere):
    """Devices that each upload once per period, at their own offset; a handover interrupts an upload."""

    def __init__(self, scenario: Scenario) -> None:
        self.handovers = self.transfers = self.broken = 0
        world = World(scenario, Streams(scenario.seed))
        assert isinstance(world.gains, SpatialGains)
        self._large_scale = world.gains.large_scale
        simulation, _ = compose(world, world.radio(simpy.Environment()), self, learners={})
        self.env, self._radio, self._network = simulation.env, simulation.radio, simulation.network
        tick_s = scenario.handover.measurement_interval_s
        self.env.process(self._start_uploads(world.count, tick_s))

    def write_columns(self, row_type: type, **columns: Any) -> None:
        self.handovers += len(columns["device"])

    def _start_uploads(self, devices: int, tick_s: float) -> Generator[simpy.Event, None, None]:
        ticks = round(PERIOD_S / tick_s)
        due = np.array_split(np.random.default_rng(0).permutation(devices), ticks)
        while True:
            for ids in due:
                cells = self._network.serving(ids)
                connected = np.flatnonzero(cells >= 0)
                if len(connected):
                    self._upload(ids[connected], cells[connected])
                yield self.env.timeout(tick_s)

    def _upload(self, ids: np.ndarray, cells: np.ndarray) -> None:
        positions_m = self._network.positions_m()[ids]
        state = LargeScaleState(
            ids.tolist(), *self._large_scale.links_to(positions_m, cells), np.zeros(len(ids))
        )
        shares = dict.fromkeys(DIRECTIONS, np.full(len(ids), SHARE))
        for link in self._radio.given(state, cells.tolist(), self._radio.budget.snr(state), shares):
            self._network.part_begins(link.device, self.env.process(self._send(link)))

    def _send(self, link: Link) -> Generator[simpy.Event, None, None]:
        transfer = yield from link.transfer("uplink", PAYLOAD_BITS)
        self.broken += transfer.cut is not None
        self.transfers += transfer.cut is None
        self._network.part_ended(link.device)


class _Walkers:
    """The rival, a process per device that walks, measures all cells, filters and decides every 0.2 s."""

    def __init__(self, env: simpy.Environment, scenario: Scenario) -> None:
        self.env = env
        self.handovers = 0
        self._rules = scenario.handover
        world = World(scenario, Streams(scenario.seed))
        assert isinstance(world.gains, SpatialGains)
        self._large_scale = world.gains.large_scale
        self._places_m = world.movement.positions_m(0.0)
        self._speeds_m_s = world.movement.doppler_speeds_m_s()
        self._radius_m = world.extent.radius_m

    def walk(self, device: int) -> Generator[simpy.Event, None, None]:
        rules, rng = self._rules, np.random.default_rng(device)
        place_m, goal_m = self._places_m[device], self._waypoint(rng)
        step_m = self._speeds_m_s[device] * rules.measurement_interval_s
        enter_db = rules.a3_offset_db + rules.hysteresis_db
        leave_db = rules.a3_offset_db - rules.hysteresis_db
        serving = int(self._large_scale.gain_db(place_m[None])[0].argmax())
        entered_s: dict[int, float] = {}
        filtered_db = None
        kept = (1 - 0.5 ** (rules.l3_filter_k / 4)) ** (rules.measurement_interval_s / SAMPLE_S)
        while True:
            yield self.env.timeout(rules.measurement_interval_s)
            way_m = goal_m - place_m
            left_m = float(np.hypot(*way_m))
            if left_m <= step_m:
                place_m, goal_m = goal_m, self._waypoint(rng)
            else:
                place_m = place_m + way_m * (step_m / left_m)
            power_db = self._large_scale.gain_db(place_m[None])[0]
            filtered_db = power_db if filtered_db is None else kept * filtered_db + (1 - kept) * power_db
            gaps_db = (filtered_db - filtered_db[serving]).tolist()
            entered_s = {cell: since_s for cell, since_s in entered_s.items() if gaps_db[cell] >= leave_db}
            for cell, gap_db in enumerate(gaps_db):
                if gap_db > enter_db:
                    entered_s.setdefault(cell, self.env.now)
            for cell, since_s in entered_s.items():
                if self.env.now - since_s >= rules.time_to_trigger_s:
                    serving, entered_s = cell, {}
                    self.handovers += 1
                    break

    def _waypoint(self, rng: np.random.Generator) -> np.ndarray:
        angle, distance_m = rng.uniform(0, 2 * np.pi), self._radius_m * np.sqrt(rng.uniform())
        return np.array([np.cos(angle), np.sin(angle)]) * distance_m
