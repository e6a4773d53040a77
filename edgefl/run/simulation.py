"""Compose a scenario's world, engine and learner, execute the run, and write its run directory."""

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import simpy

from edgefl.contract import Learner
from edgefl.engine.federation.by_federation import ByFederation
from edgefl.engine.federation.federations import Seat
from edgefl.engine.federation.server import Server
from edgefl.engine.federation.simulation import Simulation
from edgefl.engine.federation.untrained import Untrained
from edgefl.engine.records import LedgerRow, Recorder, Round
from edgefl.errors import Divergence, EdgeflError
from edgefl.learners.beside import TrainingProcess, may_fork
from edgefl.learners.building import Training
from edgefl.learners.keeping import ModelKeeper
from edgefl.learning.user_cache import without_tilde
from edgefl.run import notes
from edgefl.run.composition import compose
from edgefl.run.counts import Counts
from edgefl.run.garbage import seldom_while_a_run_goes
from edgefl.run.plan import RunPlan
from edgefl.run.results import Results
from edgefl.run.study_membership import StudyMembership, TrainingReuse
from edgefl.run_directory.circumstances import DATA_OF, SCENARIO, circumstances
from edgefl.run_directory.interruption import interruptible
from edgefl.run_directory.journal import FILE, NEVER, Journal, header, refuse_changed
from edgefl.run_directory.reading import about_of
from edgefl.run_directory.replay import JournaledLearner
from edgefl.run_directory.results import RunDirectory, free_directory
from edgefl.run_directory.snapshot import DEFAULT, Every

ALONE = TrainingReuse()
ROWS_AT_ONCE = 50_000  # number of rows of ledger.csv that are formatted together, 50 MB of text
RESCUED = "diverged-cell{}.safetensors"  # the last finite model of a server whose training diverged


def carry_out(
    plan: RunPlan,
    out: str | Path | None = None,
    *,
    on_round: Callable[[Round], None] | None = None,
    member: StudyMembership | None = None,
    every: Every = DEFAULT,
    on_note: Callable[[str], None] = lambda note: None,
    resumes: bool = False,
    sharing: TrainingReuse = ALONE,
) -> Results:
    """Execute a prepared run; a plan can be executed only once.

    Args:
        out, on_round, on_note: as in `edgefl.simulate`.
        every: how often to take a snapshot, from which an interrupted run can resume.
        member: the study that the run belongs to, with its variant and setting, or None outside studies.
        resumes: whether `out` is an unfinished run directory, whose tables are rewritten. See `edgefl.run.resuming`.
        sharing: the training reused from another run, and the training kept for other runs.

    Returns:
        The run directory: a path object that has the run's tables as attributes.

    Raises:
        EdgeflError, Interrupted: as in `edgefl.simulate`.
    """
    scenario = plan.world.scenario
    began_s = time.perf_counter() - plan.took_s
    with interruptible():
        for note in plan.notes:
            on_note(note)
        about = plan.about | (asdict(member) if member else {})
        folder = f"{scenario.name}-seed{scenario.seed}"
        path = without_tilde(Path(out)) if out else free_directory(Path("runs"), folder)
        counts = Counts.of_several(plan.learners)
        if resumes:  # before the tables are written again
            _refuse_changed(plan, path)
        with (
            RunDirectory(path, plan.prepared.described, about, resume=resumes) as run,
            _journaled(plan, run, sharing, every, on_note) as (learners, journal_notes, keep_models),
        ):
            run.draw(plan.world.places.drawing())
            recorder = _recorder(plan, run, counts)
            simulation, servers = compose(
                plan.world, plan.radio, recorder, learners, on_round or (lambda row: None)
            )
            ends = [
                simulation.env.process(_serve(server, path / seat.federation / RESCUED.format(seat.cell)))
                for seat, server in servers.items()
            ]
            with scenario.naming_places(), seldom_while_a_run_goes():
                simulation.run(*ends)
            _write_ledger(simulation)
            keep_models()
            facts = plan.world, plan.radio, simulation.network, counts
            stops = {seat: server.stopped for seat, server in servers.items()}
            of_run = notes.of_run(*facts, simulated_s=simulation.env.now, stopped=all(stops.values()))
            stopped = "; ".join(notes.of_stop(plan.world.federations, stops))
            run.complete(
                wall_s=round(time.perf_counter() - began_s, 3),
                simulated_s=round(simulation.env.now, 9),
                notes=[*plan.notes, *simulation.federations.notes(still=simulation.network.still), *of_run],
                **({"journal_notes": journal_notes} if journal_notes else {}),
                **({"stopped": stopped} if stopped else {}),
            )
    return Results(path)


@contextmanager
def _journaled(
    plan: RunPlan, run: RunDirectory, sharing: TrainingReuse, every: Every, on_note: Callable[[str], None]
) -> Iterator[tuple[Mapping[Seat, Learner], Sequence[str], Callable[[], None]]]:
    """Yield the learners (their answers go into a journal), notes on the journal, and a function to save the models.

    If `sharing` names another run, that run's training is reused; run.json counts the reused rounds. Federations that
    train nothing have no journal, since their learners' answers follow from the engine's calls.
    """
    training, own = plan.training, plan.learning_identity
    learners: dict[Seat, Any] = {
        Seat(cell, name): one for name, cells in plan.learners.items() for cell, one in cells.items()
    }
    if training is None:
        yield learners, (), lambda: None
        return
    here = _circumstances(plan, training, run.path)
    process = _process_of(plan, training, run.path)
    keeper = ModelKeeper(run.path, plan.world.scenario.record, training.cells)
    borrowed = None if own is None or keeper.follows_rounds else sharing.loan(here, training.state, own)

    @process.told
    def tell(rounds: int) -> None:
        if rounds:
            run.tell(shared={"from": sharing.name, "rounds": rounds})

    if borrowed is not None:
        borrowed.on_end = tell
        learners = {seat: borrowed.borrower(one, seat.cell) for seat, one in learners.items()}
    journal_notes: list[str] = []

    @process.told
    def noted(note: str) -> None:
        journal_notes.append(note)
        on_note(note)

    journal = Journal(
        run.path,
        here,
        borrowed or training.state,
        every=every,
        lends=sharing.before(own.pilot_sessions) if own else NEVER,
        ready=lambda: borrowed is None or borrowed.over,
        taken=borrowed.line if borrowed else lambda: None,
        on_note=noted,
    )
    trains = lambda: not journal.replays() and (borrowed is None or borrowed.over)  # noqa: E731
    with process.around(journal, trains):

        @process.done
        def keep_models() -> None:
            journal.replays()  # if all answers were recorded, this brings the learners to the journal's end
            keeper.finish(borrowed)

        yield _journaling(learners, journal, process), journal_notes, keep_models
    if borrowed is not None and not borrowed.over:
        tell(borrowed.rounds)


def _refuse_changed(plan: RunPlan, path: Path) -> None:
    """Refuse to resume a run if its files or its circumstances of training have changed."""
    now = plan.prepared.identity.written()
    then = about_of(path).get("identity") or now
    begun, here = ({f"{DATA_OF}{key}": its for key, its in one["data"].items()} for one in (then, now))
    if plan.training is not None and (trained := header(path / FILE)) is not None:
        begun, here = begun | trained, here | _circumstances(plan, plan.training, path)
    refuse_changed(path, begun, here)


def _circumstances(plan: RunPlan, training: Training, path: Path) -> dict[str, str]:
    what = plan.prepared.identity
    here = circumstances(path / SCENARIO, training.torch_device, what.code, what.learned_from)
    return {**here, **training.further}


def _process_of(plan: RunPlan, training: Training, path: Path) -> TrainingProcess:
    trained = [one for cells in training.cells.values() for one in cells.values()]
    forks = may_fork(plan.threads, training.torch_device, plan.prepared.identity.code)
    return TrainingProcess(path, forks=forks and bool(trained), trained=trained)


def _journaling(learners: Mapping[Seat, Any], journal: Journal, process: TrainingProcess) -> dict[Seat, Any]:
    """Return the learners with their answers in the journal; learners that do not train stay as they are."""
    return {
        seat: one
        if isinstance(one, Untrained)
        else process.learner(JournaledLearner(one, seat.label, journal))
        for seat, one in learners.items()
    }


def _recorder(plan: RunPlan, run: RunDirectory, counts: Counts) -> Recorder:
    """Return the recorder of all rows, which counts them for the run and for each of several federations."""
    own = {
        name: _Counting(tables, counts.of[name], *([counts] if name else []))
        for name, tables in run.tables.items()
    }
    return ByFederation(own, plan.world.federation_of) if plan.world.scenario.federations else own[""]


def _write_ledger(simulation: Simulation) -> None:
    """Write ledger.csv: each device's joules, with columns for classes, circuits and lost links if there are any."""
    power, names = simulation.network.power, simulation.fleet.class_names()
    ledger = simulation.ledger
    columns = ledger.columns(power.running_s(), simulation.fleet.idle_power_w, power.charges())
    further: dict[str, Any] = {"class": names} if names else {}
    if any(draws.send_w or draws.wait_w for draws in (kind.draws() for kind in simulation.fleet.kinds)):
        further |= ledger.circuits()
    if simulation.radio.may_fail:
        further |= ledger.stalls()
    for begin in range(0, len(simulation.fleet), ROWS_AT_ONCE):
        some = slice(begin, begin + ROWS_AT_ONCE)
        simulation.recorder.write_columns(
            LedgerRow,
            **{name: of[some] for name, of in columns.items()},
            further={name: of[some] for name, of in further.items()},
        )


def _serve(server: Server, rescue: Path) -> Generator[simpy.Event, None, None]:
    """Run a server; if training diverges, save the last finite model in `rescue`."""
    try:
        yield from server.run()
    except Divergence as diverged:
        from safetensors.torch import save_file

        save_file({name: tensor.contiguous() for name, tensor in diverged.last.items()}, rescue)
        raise EdgeflError(f"{diverged}; the last finite model is in {rescue}") from diverged


class _Counting:
    """A recorder that also counts the rows it writes, for the run and for the rows' federation."""

    def __init__(self, recorder: Recorder, *counts: Counts) -> None:
        self._recorder, self._counts = recorder, counts
        self.flush = recorder.flush

    def write_columns(
        self, row_type: type, *, further: Mapping[str, Sequence[Any]] | None = None, **columns: Any
    ) -> None:
        self._recorder.write_columns(row_type, further=further, **columns)
        for counts in self._counts:
            counts.see_columns(row_type, {**columns, **(further or {})})

    def write(self, *rows: Any, further: Mapping[str, Any] | None = None) -> None:
        self._recorder.write(*rows, further=further)
        for counts in self._counts:
            counts.see(*rows, further=further)
