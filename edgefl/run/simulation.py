"""The composition root: a scenario becomes a world, an engine and a learner, and these a run directory."""

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import simpy

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
from edgefl.errors import Divergence, EdgeflError
from edgefl.learners import outline
from edgefl.learners.building import Training, available_cores, notes_at_start
from edgefl.learners.building import build as learners_of
from edgefl.learners.own import Maker, name_of
from edgefl.rng import Streams
from edgefl.run import notes
from edgefl.run.checking import Nowhere, check_learners, check_world, twin
from edgefl.run.results import Results
from edgefl.run.study_membership import Sharing, StudyMembership, told_of
from edgefl.run_directory import parquet
from edgefl.run_directory.circumstances import SCENARIO, circumstances
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.journal import NEVER, Journal
from edgefl.run_directory.lending import Loan
from edgefl.run_directory.replay import JournaledLearner
from edgefl.run_directory.results import RunDirectory, free_directory
from edgefl.run_directory.snapshot import DEFAULT, Every
from edgefl.scenario import memory_needs
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.identity import LearningIdentity, identity, learning_identity
from edgefl.scenario.scenario import Scenario, require
from edgefl.scenario.world import World

if TYPE_CHECKING:
    from edgefl.learning.chunk_trainers import ChunkTrainers

ALONE = Sharing()
RESCUED = "diverged-cell{}.safetensors"  # the last finite model of a cell whose training diverged


def simulate(
    scenario: Scenario,
    out: str | Path | None = None,
    *,
    device: str = "auto",
    threads: int | None = None,
    trainers: "ChunkTrainers | None" = None,
    on_round: Callable[[Round], None] | None = None,
    member: StudyMembership | None = None,
    every: Every = DEFAULT,
    on_note: Callable[[str], None] = lambda note: None,
    resume_from: Path | None = None,
    load: Loaded | None = None,
    sharing: Sharing = ALONE,
    learner: Maker | Learner | None = None,
) -> Results:
    """Run a scenario.

    Args:
        scenario: from `load_scenario`.
        out: run directory, created; None: `runs/NAME-seedN` in the current folder, numbered if taken.
        device: where models are trained: `auto` (CUDA if there is one), `cpu`, `cuda`.
        threads: devices trained at the same time on a CPU; None: one per core. Results do not depend on it.
        trainers: train in place of these threads, as those of `edgefl.run.training_on_ray.on_ray` do; None: nobody.
        on_round: called with every finished round.
        member: the study this run is part of.
        every: how often a snapshot is taken, from which an interrupted run can go on.
        on_note: told what the user should know at once: of slow settings, and what is damaged in a run that goes
            on, and what is done about it.
        resume_from: a run directory that was left; its tables are written anew. See `edgefl.run.resuming`.
        load: reads the data set; None: missing files are downloaded.
        sharing: what training is taken from another run, and left for others.
        learner: trains in place of PyTorch, see `edgefl.learners.own`: called with an `Assignment` for each
            federation; the scenario then names a workload.

    Returns:
        The run directory: a path, with the tables of the run.

    Raises:
        EdgeflError: something in the scenario cannot be had; nothing has been written, or what was
            written is marked `failed`.
        Interrupted: Ctrl-C or SIGTERM; what was written is marked `interrupted`.
    """
    require(scenario)
    began = time.perf_counter()
    with interruptible():
        load = load or Loaded(download=True)
        run_of = prepare(
            scenario, device=device, threads=threads, trainers=trainers, load=load, learner=learner
        )
        world, radio, learners = run_of.world, run_of.radio, run_of.learners
        for note in run_of.notes:
            on_note(note)
        own = identity(scenario, load.checksum(scenario))
        if learner is not None:  # no run without it is this one
            own = replace(own, data={**own.data, "learner": name_of(learner)})
        about = run_of.about | {"notes": run_of.notes, "identity": own.written()}
        told = learning_identity(scenario, world, load.checksum(scenario))
        about |= told_of(told) | (asdict(member) if member else {})
        path = resume_from or (
            Path(out) if out else free_directory(Path("runs"), f"{scenario.name}-seed{scenario.seed}")
        )
        with (
            RunDirectory(path, scenario.described, about, resume=resume_from is not None) as run,
            _shared(path, run_of.training, told, sharing, run) as borrowed,
            _journal(path, run_of.training, told, borrowed, sharing, every, on_note) as journal,
        ):
            if borrowed is not None:
                learners = {cell: borrowed.borrower(one, cell) for cell, one in learners.items()}
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
                if radio.may_fail:
                    further |= scene.ledger.stalled(row.device)
                scene.recorder.write(row, further=further or None)
            told_at_end = [
                *run_of.notes,
                *scene.federations.notes(),
                *radio.regime.notes,
                *notes.of_gains(world.gains),
                *notes.of_run(
                    scenario,
                    counts,
                    radio.efficiency,
                    simulated_s=env.now,
                    may_cross=world.may_cross,
                ),
            ]
            further = {"journal_notes": journal.notes} if journal and journal.notes else {}
            wall_s = round(time.perf_counter() - began, 3)
            run.complete(wall_s=wall_s, simulated_s=round(env.now, 9), notes=told_at_end, **further)
    return Results(path)


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
    trainers: "ChunkTrainers | None" = None,
    load: Loaded | None = None,
    in_outline: bool = False,
    learner: Maker | Learner | None = None,
) -> Prepared:
    """Build a run's world, data, models and radio, and check all that can be known before it begins.

    Args:
        device, threads, trainers: as in `simulate`.
        load: reads the data set; None: missing files are downloaded.
        in_outline: only to look at: learners need not be able to learn, see `edgefl.learners.outline`.
        learner: as in `simulate`.

    Raises:
        EdgeflError: something in the scenario cannot be had; it names file, line and remedy.
    """
    load = load or Loaded(download=True)
    with scenario.naming_places():
        memory_needs.check(scenario)
        if scenario.record.tables == "parquet":
            parquet.require()
        world = World(scenario, Streams(scenario.seed))
        check_world(world, reports=learner is not None)
        radio = world.radio(simpy.Environment())
        outlines = outline.of(world, device, load) if in_outline else None
        threads = threads or available_cores()
        learners, about, training = learners_of(
            scenario, world, device, threads, load, outlines, learner, trainers
        )
        rehearsal = twin(world)
        scene, _ = compose(rehearsal, rehearsal.radio(simpy.Environment()), Nowhere(), {})
        told = [
            *notes_at_start(scenario, training),
            *check_learners(scenario, scene, learners, world.members),
        ]
    return Prepared(world, radio, learners, about, training, told)


@contextmanager
def _shared(
    path: Path, training: Training | None, told: LearningIdentity | None, sharing: Sharing, run: RunDirectory
) -> Iterator[Loan | None]:
    """What the run takes from another one; run.json says so."""
    found = None
    if training is not None and told is not None:
        found = sharing.loan(path, training, told)

    def tell(rounds: int) -> None:
        if rounds:
            run.tell(shared={"from": sharing.name, "rounds": rounds})

    if found is not None:
        found.on_end = tell
    yield found
    if found is not None and not found.over:
        tell(found.rounds)


def _journal(
    path: Path,
    training: Training | None,
    told: LearningIdentity | None,
    borrowed: Loan | None,
    sharing: Sharing,
    every: Every,
    on_note: Callable[[str], None],
) -> AbstractContextManager[Journal | None]:
    if training is None:
        return nullcontext()
    where = {**circumstances(path / SCENARIO, training.torch_device), **training.further}
    return Journal(
        path,
        where,
        borrowed or training.state,
        every=every,
        lends=sharing.before(told.pilot_sessions) if told else NEVER,
        ready=lambda: borrowed is None or borrowed.over,
        taken=borrowed.line if borrowed else lambda: None,
        on_note=on_note,
    )


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
    for process in (*network.processes(), *world.background(radio)):
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
