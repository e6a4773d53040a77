"""The composition root: a scenario becomes a world, an engine and a learner, and these a run directory."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import simpy
import torch

from edgefl import registry
from edgefl.contract import Learner
from edgefl.engine.device import Device
from edgefl.engine.ledger import Ledger
from edgefl.engine.records import Round
from edgefl.engine.server import Server
from edgefl.engine.workload import Workload
from edgefl.errors import EdgeflError
from edgefl.learning.learner import Material, TorchLearner
from edgefl.results import RunDirectory, free_directory
from edgefl.rng import Streams
from edgefl.scenario import Scenario
from edgefl.world import World

# PyTorch's own threads stay off: small layers run faster on one, and with two and other load OpenMP barriers
# have been seen to slow logistic regression 17-fold. Cores are used by training several devices at a time, and
# in a study by processes.
THREADS_PER_OPERATION = 1


@dataclass(frozen=True)
class Membership:
    """Which study a run belongs to; setting: axis of its grid -> label."""

    study: str
    variant: str
    reference: str
    setting: Mapping[str, str] = field(default_factory=dict)


def simulate(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    on_round: Callable[[Round], None] | None = None,
    member: Membership | None = None,
) -> Path:
    """Run a scenario.

    Args:
        scenario: from `load_scenario`.
        out: run directory, created; None: `runs/NAME-seedN` in the current folder, numbered if taken.
        device: where models are trained: `auto` (CUDA if there is one), `cpu`, `cuda`.
        threads: devices trained at the same time on a CPU; None: one per core. Results do not depend on it.
        on_round: called with every finished round.
        member: the study this run is part of.

    Returns:
        The run directory.

    Raises:
        EdgeflError: something in the scenario cannot be had; nothing has been written, or what was
            written is marked `failed`.
    """
    torch.set_num_threads(THREADS_PER_OPERATION)
    began = time.perf_counter()
    trained_on = torch_device(device)
    streams = Streams(scenario.seed)
    env = simpy.Environment()
    with scenario.naming_places():
        world = World(scenario, streams)
        radio = world.radio(env)
        learners, about_model, scenario = _learners(scenario, world, trained_on, threads or available_cores())

    path = (
        Path(out) if out is not None else free_directory(Path("runs"), f"{scenario.name}-seed{scenario.seed}")
    )
    about: dict[str, Any] = {"device": _device_name(trained_on), "model": about_model, "notes": []}
    if member:
        about |= asdict(member)
    with RunDirectory(path, scenario, about) as run:
        for cell, learner in learners.items():
            if isinstance(learner, TorchLearner):
                learner.rescue = path / f"diverged-cell{cell}.pt"
        recorder = _Announcing(run, on_round)
        network = world.network(env, recorder)
        devices = [Device(env, id_, radio, scenario.devices, network) for id_ in range(world.count)]
        network.cut_off = lambda id_, why: devices[id_].leave(why)
        ledger = Ledger(world.count)
        servers = [
            Server(
                env,
                cell=cell,
                network=network,
                devices=devices,
                radio=radio,
                learner=learner,
                policy=scenario.sessions,
                rules=scenario.rounds,
                ledger=ledger,
                recorder=recorder,
                streams=streams,
                members=scenario.devices.churn.members,
            )
            for cell, learner in learners.items()
        ]
        for process in network.processes():
            env.process(process)
        with scenario.naming_places():
            env.run(until=env.all_of([env.process(server.run()) for server in servers]))
        recorder.write(*ledger.rows(network.on_time_s(), scenario.devices.idle_power_w))
        notes = []
        clamped = world.gains.clamped
        if clamped:
            notes.append(f"{clamped} times a device closer than cell.min_distance_m took its path loss")
        run.complete(wall_s=round(time.perf_counter() - began, 3), simulated_s=round(env.now, 9), notes=notes)
    return path


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Announcing:
    """A recorder that also tells a listener of every round."""

    def __init__(self, run: RunDirectory, on_round: Callable[[Round], None] | None) -> None:
        self._run = run
        self._on_round = on_round
        self.flush = run.flush
        self.write_columns = run.write_columns

    def write(self, *rows: Any) -> None:
        self._run.write(*rows)
        if self._on_round:
            for row in rows:
                if isinstance(row, Round):
                    self._on_round(row)


def torch_device(name: str) -> torch.device:
    """The device of `auto`, `cpu` or `cuda`.

    Raises:
        EdgeflError: no such name, or no such device here.
    """
    if name not in ("auto", "cpu", "cuda"):
        raise EdgeflError(f"--device {name}: choose auto, cpu or cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise EdgeflError("--device cuda: PyTorch finds no CUDA device here; use --device cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


def _learners(
    scenario: Scenario, world: World, device: torch.device, threads: int
) -> tuple[dict[int, Learner], dict[str, Any], Scenario]:
    """A learner per federation, what run.json says of the model, and the scenario."""
    learners: dict[int, Learner] = {}
    if scenario.workload is not None:
        task = scenario.workload.model_dump()
        learners = {cell: Workload(**task) for cell in world.federations}
        about: dict[str, Any] = {"name": None, "parameters": None}
    else:
        settings = scenario.learning
        assert settings is not None  # the schema wants one of the two
        material = Material(settings, device, threads=threads)
        for cell in world.federations:
            learner = TorchLearner(
                settings,
                material,
                devices=world.count,
                streams=world.streams,
                homes_m=world.movement.positions_m(0.0),
                sites_m=world.sites_m,
            )
            learners[cell] = learner
        about = {
            "name": registry.name_of("models", settings.model),
            "parameters": learner.parameters,
        }
    first = learners[0]
    about |= {"payload_bits": first.payload_bits, "flops_per_sample": first.flops_per_sample}
    return learners, about, scenario
