"""Replace the PyTorch learner with any object that implements `edgefl.contract.Learner`.

    edgefl.simulate(scenario, learner=make)

edgefl calls `make` once for each cell that has a server, with an `Assignment`, which describes what is known about
the world in advance. `make` returns that cell's learner. Instead of a function, you can pass a class whose
constructor takes the assignment, or, if only one cell has a server, a learner object. The scenario has a `workload`
instead of `learning`; the learner's own payload and FLOPs replace the workload's.

A learner answers the engine's calls and has no clock. When a session begins, the learner receives the ids of the
devices present. In each round the learner receives the participants, returns each participant's iterations, samples
and bits, and then receives the devices whose updates arrived. The engine computes the participants' time and cost. A
learner should draw its random numbers from `Assignment.streams`, so that scenario and seed alone determine the run.

A run can be resumed (`edgefl.resume(path, learner=make)`) if its learner has three more methods:

    state() -> (arrays, facts)      all that training has changed: NumPy arrays by name, and facts that JSON can hold
    restore(arrays, facts)          restore the state from which `state` returned these values
    stages()                        the stages of the open session, from the current one on

Each method is called between two other calls, so that training and tests may change the learner's state: a snapshot
has the state before the latest of these calls, and after resuming, the calls that this state lacks are repeated.
Without these methods an unfinished run starts over, and run.json says so.
"""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from edgefl.config.outside import misfit
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
# learner objects that have trained, by id, since an object may not be hashable
_trained: WeakValueDictionary[int, Any] = WeakValueDictionary()
NEEDED = ("session", "flops_per_sample", "payload_bits")


@dataclass(frozen=True)
class Assignment:
    """The arguments of an external learner: its cell, devices, random streams, positions and settings.

    Args:
        cell: number of the cell that the learner serves.
        devices: ids of all devices of the run; only devices in this cell take part here.
        streams: random generators by name, shared by all cells, such as `streams("batches", device, session)`.
        homes_m: [devices, 2] positions at time 0, nan for devices not yet present.
        sites_m: [cells, 2] positions of the base stations.
        populations: device ids of each population that takes turns; by default one population of all devices.
        sessions: number of sessions; None if only the run's duration limits this number.
        workload: the scenario's workload, for example its number of steps and its batch size.
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
State = tuple[dict[str, Tensor], dict[str, Any]]


class OutsideLearner:
    """An external learner; each of its answers is checked before the engine uses it.

    Attributes:
        recorded: number of this learner's calls in the journal; its state says which of them it lacks.
    """

    def __init__(self, learner: Any, name: str, cell: int) -> None:
        self._where = Where(name, Place(cell))
        missing = [attribute for attribute in NEEDED if not hasattr(learner, attribute)]
        if missing:
            raise self._where.wrong(
                f"has no {' and no '.join(missing)}; a learner has {', '.join(NEEDED)} (edgefl.contract.Learner)"
            )
        self._learner = learner
        self.payload_bits = checked_number(
            self._where, "payload_bits", learner.payload_bits, whole=True, least=1
        )
        self.flops_per_sample = checked_number(self._where, "flops_per_sample", learner.flops_per_sample)
        some = [method for method in RESUMABLE if hasattr(learner, method)]
        if some and len(some) < len(RESUMABLE):
            raise self._where.wrong(
                f"has {' and '.join(some)}; a learner that can resume runs has all of {', '.join(RESUMABLE)}, and "
                "any other learner must have none of these methods"
            )
        self.resumable = bool(some)
        # whether training depends on simulated time; if so, a replay compares the times. True unless the learner
        # declares otherwise
        self.sees_time = bool(getattr(learner, "sees_time", True))
        self._start: SessionStart | None = None
        self._restored = False
        self.recorded = 0
        self._kept: State | None = None  # the state before a call that may be interrupted or repeated

    def session(self, start: SessionStart) -> Iterator[Stage]:
        """Yield the learner's stages, each checked; one stage must continue until the session policy ends it."""
        if self._start is None and not self._restored:
            _warn_of_earlier_run(self._learner, self._where)
        self._start = start
        endless = False
        where = self._where.at(session=start.number)
        stages = self._learner.session(start)
        if not hasattr(stages, "__iter__"):
            raise where.wrong(f"session() returned {type(stages).__name__}; it must yield stages")
        for stage in stages:
            checked = self._checked(stage, start, where)
            endless = endless or checked.facts.rounds is None
            yield checked
        if not endless:
            raise where.wrong(
                "no stage has rounds=None: one stage must continue until the scenario's session policy ends the "
                "session"
            )

    def stages(self) -> Iterator[Stage]:
        """Yield the stages of the open session, from the current one on."""
        facts_of_session = self._start or SessionStart(0, (), None)
        for stage in self._learner.stages():
            yield self._checked(stage, facts_of_session, self._where)

    def _checked(self, stage: Any, start: SessionStart, where: Where) -> CheckedStage:
        checked = CheckedStage(stage, start, where, self._keep, self._drop)
        self._drop()  # the calls before this stage are recorded
        return checked

    def _keep(self) -> None:
        if self.resumable:
            self._kept = self.present_state()

    def _drop(self) -> None:
        self._kept = None

    def state(self) -> State:
        """Return the state that a snapshot saves, from before the latest training or test if there is one."""
        return self._kept or self.present_state()

    def present_state(self) -> State:
        """Return the learner's present state, copied."""
        import torch

        arrays, facts = self._learner.state()
        tensors = {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}
        return tensors, {"recorded": self.recorded, "own": facts_of(self._where, facts)}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Restore the learner's state from a snapshot."""
        self._restored, self._kept = True, (tensors, facts)
        self.recorded = facts["recorded"]
        arrays = {name: tensor.numpy().copy() for name, tensor in tensors.items()}
        self._learner.restore(arrays, copy.deepcopy(facts["own"]))


def _warn_of_earlier_run(learner: Any, where: Where) -> None:
    """Warn if a learner object has trained in an earlier run of this process, and may keep that run's state."""
    with suppress(TypeError):  # a class with __slots__ may allow no weak references
        if _trained.get(id(learner)) is learner:
            warnings.warn(
                f"{where}: this object has trained in an earlier run, and may begin with that run's state: give a"
                " class, or a function that makes a learner",
                stacklevel=1,
            )
        _trained[id(learner)] = learner


def _assignments(world: World) -> dict[int, Assignment]:
    """Return the arguments of each cell's external learner, by cell."""
    sections = world.sections
    if sections.workload is None:
        raise EdgeflError(
            "an external learner replaces learning: set workload instead of learning (payload and"
            " FLOPs are then the learner's own)",
            ("learning",),
        )
    if sections.cloud is not None:
        raise EdgeflError(
            "the cloud averages the cells' models, but an external learner does not share its model: leave cloud out",
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
            sessions=sections.sessions.count,
            workload=sections.workload,
        )
        for cell in world.served
    }


def build(world: World, learner: Maker | Learner) -> tuple[dict[int, OutsideLearner], dict[str, Any]]:
    """Make an external learner for each cell with a server, and run.json's entries about these learners.

    Raises:
        EdgeflError: `learner` neither is nor returns a learner, or the scenario does not fit an external learner.
    """
    name, told = name_of(learner), _assignments(world)
    finished = hasattr(learner, "session") and not isinstance(learner, type)
    if finished and len(told) > 1:
        raise EdgeflError(
            f"learner={name} is a single learner, but {len(told)} cells have a federation: give a class or function "
            "that makes a learner per cell"
        )
    if not (finished or callable(learner)):
        raise EdgeflError(
            f"learner={name} has no session() and cannot be called: give a learner (edgefl.contract.Learner), or a "
            "function that makes a learner"
        )
    if not finished and (why := misfit(learner, None)):  # type: ignore[arg-type]
        raise EdgeflError(
            f"learner={name} does not take one argument, an Assignment ({why}): give a learner, or a function that"
            " makes a learner from an Assignment; edgefl.flower.learner makes one from a Flower ClientApp"
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
    """Return the learners in the form that snapshots store, or None if a learner cannot be resumed."""
    if not all(learner.resumable for learner in learners.values()):
        return None
    return TrainingParts({f"cell {cell}": learner for cell, learner in learners.items()})
