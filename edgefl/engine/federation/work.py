"""Track the devices at work, with the start and model version of each dispatch."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, cast

import numpy as np
import simpy

from edgefl.contract import (
    REPORTED_LOSS,
    UPLOAD,
    AccountingStage,
    LocalRound,
    LocalRoundUnderWay,
    Stage,
)
from edgefl.engine.air.gains import LargeScaleState
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.parts import Cause, Part


@dataclass(frozen=True)
class Dispatch:
    """Devices dispatched at the same time.

    number: number of the dispatch in its phase of the session. version: version of the model from which the devices
    started. local, large_scale: work and links of the devices, in the same order. opened: the round on the radio.
    """

    number: int
    version: int
    start_s: float
    local: LocalRound
    large_scale: LargeScaleState
    opened: RadioRound

    @cached_property
    def trained(self) -> LocalRound:
        """The devices' work, including the learner's scalars; waits until training has finished."""
        return self.local.whole() if isinstance(self.local, LocalRoundUnderWay) else self.local

    @cached_property
    def distances_m(self) -> list[float]:
        """Distance of each device from the site of the cell."""
        distances_m: list[float] = self.large_scale.distances_m.tolist()
        return distances_m


class Job(NamedTuple):
    """One device's work, given by its dispatch and its position in the dispatch."""

    dispatch: Dispatch
    position: int

    @property
    def device(self) -> int:
        """The device's id."""
        return self.dispatch.local.ids[self.position]


class JobDone(NamedTuple):
    """A finished job; it is a named tuple for speed, since a run creates one per device and round.

    taken: whether the job's update was aggregated into the model with which the job is booked. staleness: number of
    models made from the job's start until its update was aggregated or dropped as too stale; None for other updates.
    """

    dispatch: Dispatch
    position: int
    part: Part
    taken: bool = False
    staleness: int | None = None

    @property
    def device(self) -> int:
        """The device's id."""
        return self.part.device


class WorkUnderWay:
    """Jobs of a cell's devices that are under way or not yet booked.

    Attributes:
        working: process of a device -> the device's job.
        arrived: updates that wait for the server, in order of arrival.
        ended: jobs to book with the next model, because their updates were lost, too stale, or aggregated.
    """

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._next: simpy.Event | None = None
        self._wanted = 0
        self._over: list[simpy.Process] = []
        self._completed = 0  # completed jobs in `_over`
        self.working: dict[simpy.Process, Job] = {}
        self.arrived: list[JobDone] = []
        self.ended: list[JobDone] = []

    @property
    def is_over(self) -> bool:
        """Whether no job is under way, waiting or still to be booked."""
        return not (self.working or self.arrived or self.ended)

    @property
    def busy(self) -> dict[int, float]:
        """Devices that cannot be dispatched, as they work or their update waits, with the start of their work."""
        jobs: list[Job | JobDone] = [*self.working.values(), *self.arrived]
        return {job.device: job.dispatch.start_s for job in jobs}

    @property
    def lost(self) -> int:
        """Number of jobs that have ended without an update since the last model."""
        return sum(done.staleness is None for done in self.ended)

    def begin(self, dispatch: Dispatch, processes: Sequence[simpy.Process]) -> None:
        """Add the processes of a dispatch's devices, in the dispatch's order."""
        for position, process in enumerate(processes):
            self.working[process] = Job(dispatch, position)
            assert process.callbacks is not None
            process.callbacks.append(self._note)

    def end(self, dispatch: Dispatch, parts: Sequence[Part]) -> None:
        """Add all parts of a finished dispatch."""
        for position, part in enumerate(parts):
            (self.arrived if part.completed else self.ended).append(JobDone(dispatch, position, part))

    def next_end(self, wanted: int = 0) -> simpy.Event:
        """Return an event that succeeds when the wanted number of updates has arrived, or all jobs are over."""
        self._next, self._wanted = self._env.event(), wanted
        if self._over:
            self._look()
        return self._next

    def collect(self) -> None:
        """Move jobs that have ended from `working` to `arrived` or `ended`."""
        for process in self._over:
            job, part = self.working.pop(process), _part(process)
            (self.arrived if part.completed else self.ended).append(JobDone(*job, part))
        self._over.clear()
        self._completed = 0

    def drop_stale(self, version: int, takes: Callable[[int], bool]) -> None:
        """Drop waiting updates if `takes` returns False for their staleness relative to the current version."""
        for done in list(self.arrived):
            staleness = version - done.dispatch.version
            if not takes(staleness):
                self.arrived.remove(done)
                self.ended.append(done._replace(staleness=staleness))

    def take(self, taken: Sequence[JobDone], version: int) -> list[int]:
        """Mark waiting updates as aggregated into the model after `version`; return their devices, sorted."""
        chosen = set(map(id, taken))
        self.arrived = [done for done in self.arrived if id(done) not in chosen]
        self.ended += [done._replace(taken=True, staleness=version - done.dispatch.version) for done in taken]
        return sorted(done.device for done in taken)

    def give_up(self) -> None:
        """Count the waiting updates as lost."""
        self.ended += self.arrived
        self.arrived = []

    def cut_off(self, wanted: int = 0) -> Generator[simpy.Event, None, None]:
        """Cut off all working devices, as surplus if the wanted number of updates has arrived, otherwise as late."""
        late = [process for process in self.working if process.is_alive]
        if late:
            over = [_part(process) for process in self.working if not process.is_alive]
            arrived = len(self.arrived) + sum(part.completed for part in over)
            for process in late:
                process.interrupt(Cause.LATE if arrived < wanted else Cause.SURPLUS)
            # make a new all_of: an earlier one never fires once an any_of that contains it has fired
            yield self._env.all_of(list(self.working))
        self.collect()

    def settle(self) -> list[JobDone]:
        """Return the jobs to book, in order of device, and count them as booked."""
        ended, self.ended = self.ended, []
        return sorted(ended, key=lambda done: (done.device, done.dispatch.number))

    def earliest_s(self) -> float:
        """Return the earliest start of a job that is not booked yet; the current time if there is no such job."""
        jobs: list[Job | JobDone] = [*self.working.values(), *self.arrived, *self.ended]
        return min((job.dispatch.start_s for job in jobs), default=self._env.now)

    def _note(self, process: simpy.Event) -> None:
        assert isinstance(process, simpy.Process)
        self._over.append(process)
        self._completed += _part(process).completed
        self._look()

    def _look(self) -> None:
        """Trigger the event of `next_end`, if it is due."""
        enough = self._completed >= self._wanted or len(self._over) == len(self.working)
        if enough and self._next is not None and not self._next.triggered:
            self._next.succeed()


def local_of(done: Sequence[JobDone], stage: Stage) -> LocalRound:
    """Join the work of jobs, in this order, into one local round; ask the stage for columns about uploads."""
    return _with_account(stage, _joined(done), [one.part for one in done])


def _joined(done: Sequence[JobDone]) -> LocalRound:
    """Join the work of jobs into one local round."""
    dispatch, first = done[0].dispatch, done[0].dispatch.trained
    if len(done) == len(first.ids) and all(one.dispatch is dispatch for one in done):
        return first
    rows = [(one.dispatch.trained, one.position) for one in done]
    work = [(of.ids[k], of.iterations[k], of.samples[k], of.down_bits[k], of.up_bits[k]) for of, k in rows]
    scalars = {name: tuple(of.scalars[name][k] for of, k in rows) for name in first.scalars}
    ids, iterations, samples, down_bits, up_bits = zip(*work, strict=True)
    return LocalRound(ids, iterations, samples, down_bits, up_bits, scalars, first.after, first.averaged)


def _with_account(stage: Stage, local: LocalRound, parts: Sequence[Part]) -> LocalRound:
    """Return a round's local work with the columns that depend on which uploads began.

    Args:
        local: local work in the order of parts; a device may occur several times if rounds overlap.
    """
    names = [name for name, what in local.after.items() if what == UPLOAD]
    if not names:
        return local
    began = [place for place, part in enumerate(parts) if part.has_uploaded]
    told = cast(AccountingStage, stage).uploaded([parts[place].device for place in began]) if began else {}
    columns: dict[str, list[float | None]] = {name: [None] * len(parts) for name in names}
    for name, values in told.items():
        for place, value in zip(began, values, strict=True):
            columns[name][place] = value
    return replace(local, scalars={**local.scalars, **{name: tuple(of) for name, of in columns.items()}})


def mean_reported_loss(done: Sequence[JobDone]) -> float:
    """Return the mean loss reported with updates; devices without data report no loss."""
    losses = [one.dispatch.trained.scalars[REPORTED_LOSS][one.position] for one in done]
    known = [loss for loss in losses if loss is not None]
    return float(np.mean(known)) if known else 0.0


def _part(process: simpy.Event) -> Part:
    """Return the part of a round that a device's finished process has returned."""
    return cast(Part, process.value)
