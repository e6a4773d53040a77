"""The composition root: a scenario becomes a world, an engine and a learner, and these a run directory."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import simpy
import torch

from channel.geometry import poisson_count, sample_ring
from channel.shadowing import SHADOWING_STD_DB
from channel.units import dbm_to_watt
from edgefl import registry
from edgefl.contract import Learner
from edgefl.engine.battery import Battery
from edgefl.engine.churn import Churn
from edgefl.engine.churn.always_on import AlwaysOn
from edgefl.engine.device import Device
from edgefl.engine.gains import Gains, PerPlace, PerRound
from edgefl.engine.ledger import Ledger
from edgefl.engine.network import Network
from edgefl.engine.radio import Radio
from edgefl.engine.records import Recorder, Round
from edgefl.engine.server import Server
from edgefl.engine.workload import Workload
from edgefl.errors import EdgeflError
from edgefl.learning.learner import Material, TorchLearner
from edgefl.mobility import Mobility, Movement
from edgefl.results import RunDirectory, free_directory
from edgefl.rng import Streams
from edgefl.scenario import Layout, Scenario

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
        gains = _gains(scenario, streams)
        radio = _radio(env, scenario, movement, gains, streams)
        learners, about_model = _learners(scenario, count, streams, torch_device)

    path = (
        Path(out) if out is not None else free_directory(Path("runs"), f"{scenario.name}-seed{scenario.seed}")
    )
    about: dict[str, Any] = {"device": _device_name(torch_device), "model": about_model, "notes": []}
    if member:
        about |= {"study": member.study, "variant": member.variant, "reference": member.reference}
    with RunDirectory(path, scenario, about) as run:
        recorder = _Announcing(run, on_round)
        network = _network(env, scenario, movement, gains, streams, recorder)
        devices = [Device(env, id_, radio, scenario.devices, network) for id_ in range(count)]
        network.cut_off = lambda id_, why: devices[id_].leave(why)
        network.busy = lambda id_: devices[id_].busy
        ledger = Ledger(count)
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
        if gains.clamped:
            notes.append(f"{gains.clamped} times a device closer than cell.min_distance_m took its path loss")
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
    radius_m = scenario.layout.radius_m(scenario.cell.radius_m)
    ring = {
        "inner_radius_m": scenario.cell.min_distance_m,
        "outer_radius_m": mobility.area_radius_m(radius_m),
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
        cell_radius_m=radius_m,
        min_distance_m=scenario.cell.min_distance_m,
        streams=streams,
    )
    return movement, count


def _federations(layout: Layout) -> list[int]:
    """Cells that have a server: all, the centre's only, or all but the guard ring."""
    if layout.federations == "centre" or layout.rings == 0:
        return [0]
    rings = layout.rings - 1 if layout.edge == "guard_ring" else layout.rings
    return list(range(_sites(rings)))


def _sites(rings: int) -> int:
    return 1 + 3 * rings * (rings + 1)


def _gains(scenario: Scenario, streams: Streams) -> Gains:
    radio = scenario.radio
    if radio.shadowing == "spatial":
        raise EdgeflError("not yet", ("radio", "shadowing"))
    std_db = radio.shadowing_std_db
    if std_db is None:
        std_db = SHADOWING_STD_DB[radio.line_of_sight == "always"]
    path_loss_db = registry.function("path_loss", radio.path_loss)
    return PerRound(path_loss_db, std_db, radio, scenario.cell, streams)


def _network(
    env: simpy.Environment,
    scenario: Scenario,
    movement: Movement,
    gains: Gains,
    streams: Streams,
    recorder: Recorder,
) -> Network:
    devices, layout = scenario.devices, scenario.layout
    count = len(movement.positions_m(0.0))
    churn: Churn = devices.churn
    batteries = []
    if devices.battery_j is not None:
        batteries = [
            Battery(devices.battery_j, devices.recharge_w, devices.return_share) for _ in range(count)
        ]
    return Network(
        env,
        movement=movement,
        cells=_sites(layout.rings),
        radius_m=None if layout.rings else scenario.cell.radius_m,
        power_db=gains.power_db if isinstance(gains, PerPlace) and layout.rings else None,
        tick_s=scenario.handover.measurement_interval_s if layout.rings else scenario.rounds.movement_tick_s,
        handover=scenario.handover,
        recorder=recorder,
        switches=[]
        if isinstance(churn, AlwaysOn)
        else [churn.switches(id_, streams) for id_ in range(count)],
        batteries=batteries,
        idle_power_w=devices.idle_power_w,
    )


def _learners(
    scenario: Scenario, count: int, streams: Streams, device: torch.device
) -> tuple[dict[int, Learner], dict[str, Any]]:
    """A learner per federation, and what run.json says of the model."""
    cells = _federations(scenario.layout)
    learners: dict[int, Learner]
    if scenario.workload is not None:
        task = scenario.workload.model_dump()
        learners = {cell: Workload(**task) for cell in cells}
        about: dict[str, Any] = {"name": None, "parameters": None}
    else:
        assert scenario.learning is not None  # the schema wants one of the two
        material = Material(scenario.learning, device)
        trainers = {
            cell: TorchLearner(scenario.learning, material, devices=count, streams=streams) for cell in cells
        }
        learners = dict(trainers)
        about = {
            "name": registry.name_of("models", scenario.learning.model),
            "parameters": trainers[0].parameters,
        }
    first = learners[0]
    about |= {"payload_bits": first.payload_bits, "flops_per_sample": first.flops_per_sample}
    return learners, about


def _radio(
    env: simpy.Environment, scenario: Scenario, movement: Movement, gains: Gains, streams: Streams
) -> Radio:
    try:
        return Radio(
            env,
            settings=scenario.radio,
            device_power_w=dbm_to_watt(scenario.devices.transmit_power_dbm),
            speeds_m_s=movement.doppler_speeds_m_s(),
            gains=gains,
            share=registry.function("schedulers", scenario.radio.scheduler),
            streams=streams,
        )
    except ValueError as error:
        raise EdgeflError(str(error), ("radio",)) from error
