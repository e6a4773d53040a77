"""The composition root: a scenario becomes a world, an engine and a learner, and these a run directory."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simpy
import torch

from channel.geometry import poisson_count, sample_ring
from channel.units import dbm_to_watt
from edgefl import registry
from edgefl.contract import Learner
from edgefl.engine.device import Device
from edgefl.engine.population import Population
from edgefl.engine.radio import Radio
from edgefl.engine.records import Round
from edgefl.engine.server import Server
from edgefl.engine.workload import Workload
from edgefl.errors import EdgeflError
from edgefl.learning.learner import TorchLearner
from edgefl.mobility import Mobility, Movement
from edgefl.results import RunDirectory, free_directory
from edgefl.rng import Streams
from edgefl.scenario import Scenario

# Small layers run faster on one thread, and stay fast when the machine is busy: with two threads and other
# load, OpenMP barriers have been seen to slow logistic regression 17-fold. Studies use processes instead.
THREADS = 1


@dataclass(frozen=True)
class Membership:
    """Which study a run belongs to."""

    study: str
    variant: str
    reference: str


def simulate(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    on_round: Callable[[Round], None] | None = None,
    member: Membership | None = None,
) -> Path:
    """Run a scenario.

    Args:
        scenario: from `load_scenario`.
        out: run directory, created; None: `runs/NAME-seedN` in the current folder, numbered if taken.
        device: where models are trained: `auto` (CUDA if there is one), `cpu`, `cuda`.
        on_round: called with every finished round.
        member: the study this run is part of.

    Returns:
        The run directory.

    Raises:
        EdgeflError: something in the scenario cannot be had; nothing has been written, or what was
            written is marked `failed`.
    """
    torch.set_num_threads(THREADS)
    began = time.perf_counter()
    torch_device = _torch_device(device)
    streams = Streams(scenario.seed)
    env = simpy.Environment()
    with scenario.naming_places():
        movement, count = _drop_devices(scenario, streams)
        radio = _radio(env, scenario, movement, streams)
        learner, about_model = _learner(scenario, count, streams, torch_device)

    path = (
        Path(out) if out is not None else free_directory(Path("runs"), f"{scenario.name}-seed{scenario.seed}")
    )
    about: dict[str, Any] = {"device": _device_name(torch_device), "model": about_model, "notes": []}
    if member:
        about |= {"study": member.study, "variant": member.variant, "reference": member.reference}
    with RunDirectory(path, scenario, about) as run:
        recorder = _Announcing(run, on_round)
        population = Population(
            env,
            movement,
            radius_m=scenario.cell.radius_m,
            tick_s=scenario.rounds.movement_tick_s,
            recorder=recorder,
        )
        devices = [Device(env, id_, radio, scenario.devices) for id_ in range(count)]
        population.on_departure = lambda id_: devices[id_].leave()
        server = Server(
            env,
            population=population,
            devices=devices,
            radio=radio,
            learner=learner,
            policy=scenario.sessions,
            selector=scenario.rounds.selector,
            recorder=recorder,
            streams=streams,
            max_wait_s=scenario.rounds.max_wait_s,
        )
        env.process(population.watch())
        with scenario.naming_places():
            env.run(until=env.process(server.run()))
        notes = []
        if radio.clamped_distances:
            notes.append(
                f"{radio.clamped_distances} links were closer than cell.min_distance_m and took its path loss"
            )
        run.complete(wall_s=round(time.perf_counter() - began, 3), simulated_s=round(env.now, 9), notes=notes)
    return path


class _Announcing:
    """A recorder that also tells a listener of every round."""

    def __init__(self, run: RunDirectory, on_round: Callable[[Round], None] | None) -> None:
        self._run = run
        self._on_round = on_round
        self.flush = run.flush

    def write(self, *rows: Any) -> None:
        self._run.write(*rows)
        if self._on_round:
            for row in rows:
                if isinstance(row, Round):
                    self._on_round(row)


def _torch_device(name: str) -> torch.device:
    if name not in ("auto", "cpu", "cuda"):
        raise EdgeflError(f"--device {name}: choose auto, cpu or cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise EdgeflError("--device cuda: PyTorch finds no CUDA device here; use --device cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _drop_devices(scenario: Scenario, streams: Streams) -> tuple[Movement, int]:
    """Devices uniform in area on the disc of their mobility model, at least the minimum distance away."""
    mobility: Mobility = scenario.devices.mobility
    ring = {
        "inner_radius_m": scenario.cell.min_distance_m,
        "outer_radius_m": mobility.area_radius_m(scenario.cell.radius_m),
    }
    count = scenario.devices.count
    if count is None:
        density = scenario.devices.density_per_km2
        assert density is not None  # the schema wants one of the two
        count = poisson_count(streams("drop", "count"), density_per_km2=density, **ring)
        if count == 0:
            raise EdgeflError(
                f"{density}: seed {scenario.seed} drops no device at all; raise it",
                ("devices", "density_per_km2"),
            )
    positions_m = sample_ring(streams("drop", "positions"), count, **ring)
    movement = mobility.start(
        positions_m,
        cell_radius_m=scenario.cell.radius_m,
        min_distance_m=scenario.cell.min_distance_m,
        streams=streams,
    )
    return movement, count


def _learner(
    scenario: Scenario, count: int, streams: Streams, device: torch.device
) -> tuple[Learner, dict[str, Any]]:
    if scenario.workload is not None:
        task = scenario.workload
        learner: Learner = Workload(**task.model_dump())
        about: dict[str, Any] = {"name": None, "parameters": None}
    else:
        assert scenario.learning is not None  # the schema wants one of the two
        trainer = TorchLearner(scenario.learning, devices=count, streams=streams, device=device)
        learner = trainer
        about = {
            "name": registry.name_of("models", scenario.learning.model),
            "parameters": trainer.parameters,
        }
    about |= {"payload_bits": learner.payload_bits, "flops_per_sample": learner.flops_per_sample}
    return learner, about


def _radio(env: simpy.Environment, scenario: Scenario, movement: Movement, streams: Streams) -> Radio:
    try:
        return Radio(
            env,
            settings=scenario.radio,
            cell=scenario.cell,
            device_power_w=dbm_to_watt(scenario.devices.transmit_power_dbm),
            speeds_m_s=movement.doppler_speeds_m_s(),
            path_loss_db=registry.function("path_loss", scenario.radio.path_loss),
            share=registry.function("schedulers", scenario.radio.scheduler),
            streams=streams,
        )
    except ValueError as error:
        raise EdgeflError(str(error), ("radio",)) from error
