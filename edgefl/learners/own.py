"""Learners from outside: any object that keeps `edgefl.contract.Learner`, in place of the one with PyTorch.

    edgefl.simulate(scenario, learner=make)

`make` is called once for each federation, that is, for each cell that has a server, with an `Assignment`: what
there is to know of the world before it begins. It returns that cell's learner; a class whose constructor takes the
assignment will do, and where there is one federation only, a finished learner too. The scenario names a `workload`:
it stands where `learning` would stand, and the learner's own payload and FLOPs count in place of the workload's.

A learner answers questions of the network and knows no clock. Of a session it is told who is there, of a round who
takes part; it answers with the iterations, samples and bits of each, then it is told whose updates arrived. What
these cost and how long they take is none of its business. It should draw its random numbers from
`Assignment.streams`: then the run is a function of scenario and seed.

A run can go on where it was left (`edgefl.resume(path, learner=make)`) if its learner has three methods more:

    state() -> (arrays, facts)      everything that training has changed: name -> NumPy array, and what JSON can hold
    restore(arrays, facts)          be as when `state` gave these
    stages()                        the stages of the session that is open, from the present one on

Each is asked between rounds; a round that has been trained and not aggregated by then is trained again. Without them
a run that was left starts anew, and run.json says so.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from edgefl.config.own_code import name_of
from edgefl.contract import Learner, SessionStart, Stage
from edgefl.engine.settings import WorkloadSettings
from edgefl.errors import EdgeflError
from edgefl.learners.checked import CheckedStage, Where, checked_number, facts_of
from edgefl.learning.tensors import Tensor
from edgefl.rng import Streams
from edgefl.run_directory.questions import Place
from edgefl.run_directory.snapshot import TrainingParts
from edgefl.scenario.world import World

__all__ = ["Assignment"]

RESUMABLE = ("state", "restore", "stages")
NEEDED = ("session", "flops_per_sample", "payload_bits")


@dataclass(frozen=True)
class Assignment:
    """What a learner from outside is told when it is made.

    Args:
        cell: of its federation.
        devices: ids of all devices of the run; those that come to this cell take part here.
        streams: random generators by name, the same for all cells: `streams("batches", device, session)`.
        homes_m: [devices, 2] positions at time 0, nan: not there yet.
        sites_m: [cells, 2] positions of the base stations.
        populations: device ids of each standing population that takes turns; one of all devices if none do.
        sessions: how many there will be; None: until the run's duration is over.
        workload: the scenario's: steps and batch are there to be used.
    """

    cell: int
    devices: range
    streams: Streams
    homes_m: np.ndarray
    sites_m: np.ndarray
    populations: tuple[range, ...]
    sessions: int | None
    workload: WorkloadSettings


Maker = Callable[[Assignment], Learner]


class OutsideLearner:
    """A learner from outside, each of whose answers is looked at before the engine takes it."""

    def __init__(self, learner: Any, name: str, cell: int) -> None:
        self._where = Where(name, Place(cell))
        missing = [attribute for attribute in NEEDED if not hasattr(learner, attribute)]
        if missing:
            raise self._where.wrong(
                f"has no {' and no '.join(missing)};"
                f" a learner has {', '.join(NEEDED)} (edgefl.contract.Learner)"
            )
        self._learner = learner
        self.payload_bits = checked_number(
            self._where, "payload_bits", learner.payload_bits, whole=True, least=1
        )
        self.flops_per_sample = checked_number(self._where, "flops_per_sample", learner.flops_per_sample)
        some = [method for method in RESUMABLE if hasattr(learner, method)]
        if some and len(some) < len(RESUMABLE):
            raise self._where.wrong(
                f"has {' and '.join(some)}; a learner that can go on where a run was left has all of"
                f" {', '.join(RESUMABLE)}, any other none of them"
            )
        self.resumable = bool(some)
        # compared with a journal's if a run goes on; who does not say is taken to see it
        self.sees_time = bool(getattr(learner, "sees_time", True))
        self._start: SessionStart | None = None

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the learner's stages, each looked at; the policy ends one of them, or a session would never begin."""
        self._start = start
        endless = False
        where = self._where.at(session=start.number)
        stages = self._learner.session(start)
        if not hasattr(stages, "__iter__"):
            raise where.wrong(f"session() gave {type(stages).__name__}; yield its stages")
        for stage in stages:
            checked = CheckedStage(stage, start, where)
            endless = endless or checked.facts.rounds is None
            yield checked
        if not endless:
            raise where.wrong(
                "no stage has rounds=None: one goes on until the scenario's session policy ends the session"
            )

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of the session that is open, from the present one on."""
        facts_of_session = self._start or SessionStart(0, (), None)
        for stage in self._learner.stages():
            yield CheckedStage(stage, facts_of_session, self._where)

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return its state as a snapshot holds it."""
        import torch

        arrays, facts = self._learner.state()
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}, facts_of(
            self._where, facts
        )

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Let it go on from a snapshot."""
        self._learner.restore({name: tensor.numpy() for name, tensor in tensors.items()}, dict(facts))


def _assignments(world: World) -> dict[int, Assignment]:
    """Return the assignment of each federation's learner.

    Raises:
        EdgeflError: the scenario trains by itself.
    """
    scenario = world.scenario
    if scenario.workload is None:
        raise EdgeflError(
            "a learner from outside trains in this one's place: give workload in place of learning (its payload and"
            " FLOPs are then the learner's own)",
            ("learning",),
        )
    if scenario.cloud is not None:
        raise EdgeflError(
            "a learner from outside keeps its models to itself, and the cloud averages those of cells: leave it out",
            ("cloud",),
        )
    homes_m = world.movement.positions_m(0.0).copy()
    return {
        cell: Assignment(
            cell=cell,
            devices=range(world.count),
            streams=world.streams.below("outside learner"),
            homes_m=homes_m,
            sites_m=world.cells_m,
            populations=tuple(world.populations),
            sessions=scenario.sessions.count,
            workload=scenario.workload,
        )
        for cell in world.served
    }


def build(world: World, learner: Maker | Learner) -> tuple[dict[int, OutsideLearner], dict[str, Any]]:
    """Make the learner of each federation; return them, and what run.json says of them.

    Raises:
        EdgeflError: it is no learner, or the scenario does not fit one.
    """
    name, told = name_of(learner), _assignments(world)
    finished = hasattr(learner, "session") and not isinstance(learner, type)
    if finished and len(told) > 1:
        raise EdgeflError(
            f"learner={name} is one learner, and {len(told)} cells have a federation: give a class or function that"
            " makes one for each"
        )
    if not (finished or callable(learner)):
        raise EdgeflError(
            f"learner={name} has no session() and cannot be called: give a learner (edgefl.contract.Learner), or what"
            " makes one"
        )
    made = {
        cell: OutsideLearner(learner if finished else learner(one), name, cell)  # type: ignore[operator]
        for cell, one in told.items()
    }
    first = next(iter(made.values()))
    about = {
        "learner": {"name": name, "resumable": first.resumable},
        "device": "cpu",
        "model": {
            "name": None,
            "parameters": None,
            "payload_bits": first.payload_bits,
            "flops_per_sample": first.flops_per_sample,
        },
    }
    return made, about


def training_of(learners: Mapping[int, OutsideLearner]) -> TrainingParts | None:
    """Return what snapshots of a run hold; None: its learners cannot go on where it was left."""
    if not all(learner.resumable for learner in learners.values()):
        return None
    return TrainingParts({f"cell {cell}": learner for cell, learner in learners.items()})
