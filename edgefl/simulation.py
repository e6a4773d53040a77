"""The composition root: a scenario becomes a world, an engine and a learner, and these a run directory."""

import math
import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simpy

from edgefl import memory, memory_needs, notes, outline, registry
from edgefl.checking import Nowhere, check_learners, check_world, twin
from edgefl.contract import Learner
from edgefl.engine.device import Device, Processors
from edgefl.engine.federations import Federations
from edgefl.engine.ledger import Ledger
from edgefl.engine.positions import recorded_positions
from edgefl.engine.radio import Radio
from edgefl.engine.records import Recorder, Round
from edgefl.engine.rounds import Rounds
from edgefl.engine.scene import Scene
from edgefl.engine.server import Server
from edgefl.engine.untrained import Untrained
from edgefl.errors import Divergence, EdgeflError
from edgefl.rng import Streams
from edgefl.run_directory import parquet
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.journal import Journal, circumstances
from edgefl.run_directory.replay import JournaledLearner
from edgefl.run_directory.results import RunDirectory, free_directory
from edgefl.run_directory.snapshot import DEFAULT, Every, Snapshotable, Together
from edgefl.scenario import Scenario
from edgefl.world import World

if TYPE_CHECKING:  # a run without learning never waits for PyTorch to load
    import torch

    from edgefl.learning.datasets import Data, Dataset
    from edgefl.learning.material import Material

# PyTorch's own threads stay off: small layers run faster on one, and with two and other load OpenMP barriers
# have been seen to slow logistic regression 17-fold. Cores are used by training several devices at a time, and
# in a study by processes.
THREADS_PER_OPERATION = 1
RESCUED = "diverged-cell{}.safetensors"  # the last finite model of a cell whose training diverged


@dataclass(frozen=True)
class StudyMembership:
    """Which study a run belongs to; setting: axis of its grid -> label."""

    study: str
    variant: str
    reference: str
    setting: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Training:
    """What a run trains, and where; only such a run has a journal: without tensors, the engine alone is as fast."""

    state: Together
    torch_device: "torch.device"


def simulate(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    on_round: Callable[[Round], None] | None = None,
    member: StudyMembership | None = None,
    every: Every = DEFAULT,
    on_note: Callable[[str], None] = lambda note: None,
    resume_from: Path | None = None,
) -> Path:
    """Run a scenario.

    Args:
        scenario: from `load_scenario`.
        out: run directory, created; None: `runs/NAME-seedN` in the current folder, numbered if taken.
        device: where models are trained: `auto` (CUDA if there is one), `cpu`, `cuda`.
        threads: devices trained at the same time on a CPU; None: one per core. Results do not depend on it.
        on_round: called with every finished round.
        member: the study this run is part of.
        every: how often a snapshot is taken, from which an interrupted run can go on.
        on_note: told what the user should know at once: of slow settings, and what is damaged in a run that goes
            on, and what is done about it.
        resume_from: a run directory that was left; its tables are written anew. See `edgefl.resuming`.

    Returns:
        The run directory.

    Raises:
        EdgeflError: something in the scenario cannot be had; nothing has been written, or what was
            written is marked `failed`.
        Interrupted: Ctrl-C or SIGTERM; what was written is marked `interrupted`.
    """
    began = time.perf_counter()
    with interruptible():
        run_of = prepare(scenario, device=device, threads=threads)
        world, radio, learners, training = run_of.world, run_of.radio, run_of.learners, run_of.training
        for note in run_of.notes:
            on_note(note)
        about = run_of.about | {"notes": run_of.notes} | (asdict(member) if member else {})
        path = resume_from or (
            Path(out) if out else free_directory(Path("runs"), f"{scenario.name}-seed{scenario.seed}")
        )
        with (
            RunDirectory(path, scenario, about, resume=resume_from is not None) as run,
            _journal(path, training, every, on_note) as journal,
        ):
            if journal is not None:
                learners = {cell: JournaledLearner(one, cell, journal) for cell, one in learners.items()}
            counts = notes.Counts()
            scene, servers = compose(world, radio, _Announcing(run, on_round, counts), learners)
            env = scene.env
            ends = [
                env.process(_serve(server, path / RESCUED.format(cell))) for cell, server in servers.items()
            ]
            with scenario.naming_places():
                env.run(until=env.all_of(ends))
            power = scene.network.power
            names = scene.fleet.class_names()
            tail_j = power.tails.energy_j(env.now)
            for row in scene.ledger.rows(
                power.running_s(), scene.fleet.idle_power_w, power.charges(), tail_j
            ):
                further: dict[str, Any] = {"class": names[row.device]} if names else {}
                if power.tails.any:
                    further["tail_j"] = float(tail_j[row.device])
                scene.recorder.write(row, further=further or None)
            told_at_end = [
                *run_of.notes,
                *scene.federations.notes(),
                *radio.regime.notes,
                *_notes_of_the_gains(world),
                *notes.of_run(
                    scenario,
                    counts,
                    radio.efficiency,
                    simulated_s=env.now,
                    may_cross=world.may_cross,
                ),
            ]
            told = {"journal_notes": journal.notes} if journal and journal.notes else {}
            wall_s = round(time.perf_counter() - began, 3)
            run.complete(wall_s=wall_s, simulated_s=round(env.now, 9), notes=told_at_end, **told)
    return path


@dataclass(frozen=True)
class Prepared:
    """A run, built and checked; nothing of it has begun, and nothing is written.

    learners: cell -> its learner. about: what run.json says of the model and of where it is trained. notes: what
        is allowed, but hardly wanted.
    """

    world: World
    radio: Radio
    learners: Mapping[int, Any]
    about: dict[str, Any]
    training: Training | None
    notes: list[str]


def prepare(
    scenario: Scenario,
    *,
    device: str = "auto",
    threads: int | None = None,
    load: "Callable[[Dataset], Data] | None" = None,
    in_outline: bool = False,
) -> Prepared:
    """Build a run's world, data, models and radio, and check all that can be known before it begins.

    Args:
        device, threads: as in `simulate`.
        load: reads a data set; None: its own `load`.
        in_outline: only to look at: learners need not be able to learn, see `edgefl.outline`.

    Raises:
        EdgeflError: something in the scenario cannot be had; it names file, line and remedy.
    """
    with scenario.naming_places():
        memory_needs.check(scenario)
        if scenario.record.tables == "parquet":
            parquet.require()
        world = World(scenario, Streams(scenario.seed))
        check_world(world)
        radio = world.radio(simpy.Environment())
        outlines = outline.of(world, device, load) if in_outline else None
        threads = threads or available_cores()
        learners, about, training = _learners(scenario, world, device, threads, load, outlines)
        rehearsal = twin(world)
        scene, _ = compose(rehearsal, rehearsal.radio(simpy.Environment()), Nowhere(), {})
        told = [
            *_notes_at_start(scenario, training),
            *check_learners(scenario, scene, learners, world.members),
        ]
    return Prepared(world, radio, learners, about, training, told)


def _notes_at_start(scenario: Scenario, training: Training | None) -> list[str]:
    """What is known before a run that its user should know."""
    if training is None or training.torch_device.type != "cpu" or scenario.learning is None:
        return []
    from edgefl.learning.processor import bf16_note

    note = bf16_note() if scenario.learning.precision == "bf16" else None
    return [note] if note else []


def _notes_of_the_gains(world: World) -> list[str]:
    told, gains = [], world.gains
    if gains.clamped:
        told.append(f"{gains.clamped} times a device closer than cell.min_distance_m took its path loss")
    if gains.beyond:
        told.append(f"{gains.beyond} times a device just beyond the edge took the gain there")
    return told


def _journal(
    path: Path, training: Training | None, every: Every, on_note: Callable[[str], None]
) -> AbstractContextManager[Journal | None]:
    if training is None:
        return nullcontext()
    where = circumstances(path / "scenario.yaml", training.torch_device)
    return Journal(path, where, training.state, every=every, on_note=on_note)


def compose(
    world: World, radio: Radio, recorder: Recorder, learners: Mapping[int, Learner]
) -> tuple[Scene, dict[int, Server]]:
    """The scene of a run, alive from the radio's clock on, and a server per federation, not yet started.

    Args:
        radio: of this world.
        learners: cell -> its learner.
    """
    scenario, env = world.scenario, radio.env
    network = world.network(env, recorder)
    if world.movement.moves:
        radio.follow(network.positions_m)
    fleet = world.fleet
    devices = [Device(env, id_, radio, fleet.device(id_), network) for id_ in range(world.count)]
    federations = Federations(env, scenario.rounds.max_wait_s)
    scene = Scene(
        env=env,
        radio=radio,
        network=network,
        devices=devices,
        ledger=Ledger(world.count),
        recorder=recorder,
        streams=world.streams,
        federations=federations,
        fleet=fleet,
        duration_s=scenario.duration_s or math.inf,
    )
    for process in network.processes():
        env.process(process)
    if scenario.record.positions_s is not None:
        every_s = scenario.record.positions_s
        env.process(
            recorded_positions(env, network, recorder, every_s, world.survey_of_places(), radio.mean_sinr)
        )
    return scene, {cell: _server(scene, cell, learner, world) for cell, learner in learners.items()}


def _server(scene: Scene, cell: int, learner: Learner, world: World) -> Server:
    scenario = world.scenario
    policy = scenario.sessions
    processors = Processors(scene.fleet, learner.flops_per_sample)
    return Server(
        scene,
        Rounds(scene, cell, scenario.rounds, processors, policy.report_bits),
        learner=learner,
        policy=policy,
        members=world.members,
    )


def _serve(server: Server, rescue: Path) -> Generator[simpy.Event, None, None]:
    """Run a server; if training diverges, keep the last finite model in the file."""
    try:
        yield from server.run()
    except Divergence as diverged:
        from safetensors.torch import save_file

        save_file({name: tensor.contiguous() for name, tensor in diverged.last.items()}, rescue)
        raise EdgeflError(f"{diverged}; the last finite model is in {rescue}") from diverged


def available_cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Announcing:
    """A recorder that also counts what it writes, and tells a listener of every round."""

    def __init__(
        self, recorder: Recorder, on_round: Callable[[Round], None] | None, counts: notes.Counts
    ) -> None:
        self._on_round = on_round
        self._recorder = recorder
        self._counts = counts
        self.flush = recorder.flush

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        self._recorder.write_columns(row_type, further=further, **columns)
        self._counts.see_columns(row_type, columns)

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        self._recorder.write(*rows, further=further)
        self._counts.see(*rows)
        if self._on_round:
            for row in rows:
                if isinstance(row, Round):
                    self._on_round(row)


def torch_device(name: str) -> "torch.device":
    """The torch device of `auto`, `cpu` or `cuda`.

    Raises:
        EdgeflError: no such name, or no such device here.
    """
    import torch

    if name not in ("auto", "cpu", "cuda"):
        raise EdgeflError(f"--device {name}: choose auto, cpu or cuda")
    available = torch.cuda.is_available()
    if name == "cuda" and not available:
        raise EdgeflError("--device cuda: PyTorch finds no CUDA device here; use --device cpu or auto")
    return torch.device("cuda" if available and name != "cpu" else "cpu")


def _learners(
    scenario: Scenario,
    world: World,
    device: str,
    threads: int,
    load: "Callable[[Dataset], Data] | None",
    outlines: Mapping[int, Any] | None,
) -> tuple[dict[int, Any], dict[str, Any], Training | None]:
    """A learner per federation, what run.json says of the model and of where it is trained, and its training."""
    training = None
    if scenario.workload is not None:
        task = scenario.workload.model_dump()
        learners: dict[int, Any] = {cell: Untrained(**task) for cell in world.federations}
        about: dict[str, Any] = {"name": None, "parameters": None}
        where = "cpu"
    else:
        learners, where = dict(outlines or {}), "cpu"
        if not learners:
            learners, where, training = _torch_learners(scenario, world, device, threads, load)
        assert scenario.learning is not None  # the schema wants one of the two
        about = {
            "name": registry.name_of("models", scenario.learning.model),
            "parameters": next(iter(learners.values())).parameters,
        }
    first = next(iter(learners.values()))
    about |= {"payload_bits": first.payload_bits, "flops_per_sample": first.flops_per_sample}
    return learners, {"device": where, "model": about}, training


def _check_memory(scenario: Scenario, material: "Material", devices: int) -> None:
    """Refuse models that do not fit the memory of the machine, or of the GPU that they are trained on."""
    import torch

    from edgefl.learning.cost import size

    assert scenario.learning is not None
    numbers = size(scenario.learning.model, material.input_shape, material.classes)
    available = memory.available_bytes()
    if material.torch_device.type == "cuda":
        available = torch.cuda.get_device_properties(material.torch_device).total_memory
    memory.require(memory_needs.of_training(scenario, devices, numbers), available)


def _torch_learners(
    scenario: Scenario,
    world: World,
    device: str,
    threads: int,
    load: "Callable[[Dataset], Data] | None",
) -> tuple[dict[int, Any], str, Training]:
    """A learner per federation that trains for real, the name of the processor it trains on, and the training."""
    import torch

    from edgefl.learning.learner import TorchLearner
    from edgefl.learning.material import Material

    torch.set_num_threads(THREADS_PER_OPERATION)
    trained_on = torch_device(device)
    settings = scenario.learning
    assert settings is not None
    material = Material(settings, trained_on, devices=world.count, threads=threads, load=load)
    _check_memory(scenario, material, world.count)
    homes_m, sites_m = world.movement.positions_m(0.0), world.cells_m
    learners = {
        cell: TorchLearner(
            settings,
            material,
            streams=world.streams,
            homes_m=homes_m,
            sites_m=sites_m,
            cell=cell,
            populations=world.populations,
            kept=world.fleet.samples_kept,
        )
        for cell in world.federations
    }
    name = torch.cuda.get_device_name(trained_on) if trained_on.type == "cuda" else "cpu"
    parts: dict[str, Snapshotable] = {"devices": material}
    parts |= {f"cell {cell}": learner for cell, learner in learners.items()}
    return learners, name, Training(Together(parts), trained_on)
