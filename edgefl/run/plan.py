"""Build and check a run without starting it or writing anything."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from edgefl.contract import BEGIN, REPORTED_LOSS, REPORTED_NORM, Learner, LocalRound, Now, SessionStart
from edgefl.engine.air.radio import Radio
from edgefl.engine.clock import Clock
from edgefl.engine.federation.untrained import Untrained
from edgefl.engine.records import Nowhere
from edgefl.learners import model_size
from edgefl.learners.building import Learners, Means, Training, available_cores, notes_at_start
from edgefl.learners.building import build as learners_of
from edgefl.learners.own import Maker
from edgefl.mobility import notes as notes_on
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.run.preflight import check_learners, check_world
from edgefl.run_directory import parquet
from edgefl.scenario import memory_needs
from edgefl.scenario.data_loading import Loaded
from edgefl.scenario.prepared import LearningIdentity, Prepared
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World


@dataclass(frozen=True)
class RunPlan:
    """A run, built and checked.

    model: run.json's entries about the model and the PyTorch device that trains it. training: the training of all
    federations, or None if nothing is trained. notes: notes on settings that are allowed but probably unintended.
    took_s: wall time of the preparation. threads: as in `simulate`.
    """

    prepared: Prepared
    world: World
    radio: Radio
    learners: Learners
    model: Mapping[str, Any]
    training: Training | None
    notes: list[str]
    took_s: float
    threads: int = 1

    @cached_property
    def learning_identity(self) -> LearningIdentity | None:
        """The identity of the run's training, if other runs may share this training; otherwise None."""
        return self.prepared.learning_identity(self.world)

    @property
    def learner(self) -> Any:
        """The first federation's learner."""
        return self.learner_of(next(iter(self.learners)))

    def learner_of(self, federation: str) -> Any:
        """Return the learner of one of a federation's cells; the learners of all its cells are alike."""
        return next(iter(self.learners[federation].values()))

    @property
    def about(self) -> dict[str, Any]:
        """Return the entries of run.json when the run begins."""
        about = {**self.model, "notes": self.notes, "identity": self.prepared.identity.written()}
        if self.learning_identity is not None:
            about["learning_identity"] = asdict(self.learning_identity)
        return about

    def untrained(self) -> "RunPlan":
        """Return the plan of the same run without training, in which devices only compute and send bits."""
        return replace(self, learners={name: self._untaught(name) for name in self.learners}, training=None)

    def _untaught(self, federation: str) -> Mapping[int, Any]:
        learning, learners = self.world.federations[federation].learning, self.learners[federation]
        if learning is None:
            return learners
        learner, local = self.learner_of(federation), learning.local
        own = {"payload_bits": learner.payload_bits, "flops_per_sample": learner.flops_per_sample}
        return dict.fromkeys(learners, _Untaught(**own, steps=local.steps, batch=local.batch))


class _Untaught(Untrained):
    """A placeholder that replaces a learner and trains nothing; all devices report the same loss and norm."""

    def session(self, start: SessionStart) -> Iterator[Untrained]:
        asked = {REPORTED_LOSS: start.reports, REPORTED_NORM: start.norms}
        self._reports = [name for name, asks in asked.items() if asks]
        yield self

    def train(self, ids: Sequence[int], round_: int, now: Now = BEGIN) -> LocalRound:
        return replace(super().train(ids, round_), scalars=dict.fromkeys(self._reports, (1.0,) * len(ids)))


def prepare(
    scenario: Scenario,
    *,
    device: str = "auto",
    threads: int | None = None,
    load: Loaded | None = None,
    sizes_only: bool = False,
    learner: Maker | Learner | None = None,
) -> RunPlan:
    """Build a run's world, data, models and radio, and check everything that can be checked before it begins.

    Args:
        device, threads: as in `simulate`.
        load: function that reads the data set; if None, missing files are downloaded.
        sizes_only: whether learners only know their models' sizes, see `edgefl.learners.model_size`.
        learner: as in `simulate`.

    Raises:
        EdgeflError: the scenario cannot be run as described; the message names file, line and remedy.
    """
    began_s = time.perf_counter()
    load = load or Loaded(download=True)
    with scenario.naming_places():
        memory_needs.check(memory_needs.of_world(scenario))
        if scenario.record.tables == "parquet":
            parquet.require()
        world = World(scenario, Streams(scenario.seed))
        memory_needs.check(memory_needs.of_places(world))
        of_world = check_world(world, reports=learner is not None)
        radio = world.radio(Clock())
        sizes = {
            name: model_size.of(one, device, load) if sizes_only else None
            for name, one in world.by_federation.items()
        }
        threads = threads or available_cores()
        means = Means(device, threads, load)
        learners, model, training = learners_of(world, means, sizes, learner)
        rehearsal = world.rehearsal()
        simulation, _ = compose(rehearsal, rehearsal.radio(Clock()), Nowhere(), {})
        checked = check_learners(world, simulation, learners)
        of_people = notes_on(world.movement, np.arange(world.count))
        notes = [*of_world, *world.places.noted(), *of_people, *notes_at_start(training), *checked]
    prepared, took_s = Prepared(scenario, load, learner), time.perf_counter() - began_s
    return RunPlan(prepared, world, radio, learners, model, training, notes, took_s, threads)
