"""Work under way where rounds overlap: who has been sent to do what, when, and with which version of the model."""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import simpy

from edgefl.contract import REPORTED_LOSS, LocalRound
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.parts import Cause, Part

# further columns where rounds overlap, of rounds.csv and of devices.csv
STALENESS_MEAN, STALENESS_MAX, WORKING = "staleness_mean", "staleness_max", "working"
STALENESS, DISPATCH, BEGAN_FROM = "staleness", "dispatch", "version"


@dataclass(frozen=True)
class Dispatch:
    """Devices that were sent to work at the same time.

    number: in its phase of the session. version: of the model that they began from. distances_m: in the order of
    local.ids. opened: their round on the radio.
    """

    number: int
    version: int
    start_s: float
    distances_m: Sequence[float]
    local: LocalRound
    opened: RadioRound


@dataclass(frozen=True)
class Job:
    """One device's work: a position in its dispatch."""

    dispatch: Dispatch
    position: int

    @property
    def device(self) -> int:
        """The device's id."""
        return self.dispatch.local.ids[self.position]


@dataclass(frozen=True)
class JobDone:
    """A job that is over.

    taken: its update is in the model booked with it. staleness: models made since it began until it was taken,
    or dropped for that; None: neither.
    """

    job: Job
    part: Part
    taken: bool = False
    staleness: int | None = None


class WorkUnderWay:
    """What the devices of a cell do while rounds overlap.

    Attributes:
        working: process -> its job.
        arrived: whose updates wait for the server, in the order in which they arrived.
        ended: what is to be booked with the next model: lost, too stale, or taken into it.
    """

    def __init__(self, env: simpy.Environment) -> None:
        self._env = env
        self._next: simpy.Event | None = None
        self._over: list[simpy.Process] = []
        self.working: dict[simpy.Process, Job] = {}
        self.arrived: list[JobDone] = []
        self.ended: list[JobDone] = []

    @property
    def is_over(self) -> bool:
        """Whether nothing is left, neither at work nor to be booked."""
        return not (self.working or self.arrived or self.ended)

    @property
    def busy(self) -> set[int]:
        """Devices that begin nothing now: they work, or their update waits."""
        return {job.device for job in self.working.values()} | {done.job.device for done in self.arrived}

    @property
    def lost(self) -> int:
        """How many jobs have ended without an update since the last model."""
        return sum(done.staleness is None for done in self.ended)

    def begin(self, dispatch: Dispatch, processes: Sequence[simpy.Process]) -> None:
        """Take in the processes of a dispatch's devices, in their order."""
        for position, process in enumerate(processes):
            self.working[process] = Job(dispatch, position)
            assert process.callbacks is not None
            process.callbacks.append(self._note)

    def next_end(self) -> simpy.Event:
        """Return an event that succeeds when the next of those at work is done."""
        self._next = self._env.event()
        if self._over:
            self._next.succeed()
        return self._next

    def collect(self) -> None:
        """Take in what has ended."""
        for process in self._over:
            job, part = self.working.pop(process), cast(Part, process.value)
            (self.arrived if part.completed else self.ended).append(JobDone(job, part))
        self._over.clear()

    def drop_stale(self, version: int, takes: Callable[[int], bool]) -> None:
        """Drop updates that wait and are too stale for today's model; `takes` says which staleness is not."""
        for done in list(self.arrived):
            staleness = version - done.job.dispatch.version
            if not takes(staleness):
                self.arrived.remove(done)
                self.ended.append(replace(done, staleness=staleness))

    def take(self, taken: Sequence[JobDone], version: int) -> list[int]:
        """Take some of the updates that wait, for the model after this version; return their devices, sorted."""
        chosen = set(map(id, taken))
        self.arrived = [done for done in self.arrived if id(done) not in chosen]
        self.ended += [
            replace(done, taken=True, staleness=version - done.job.dispatch.version) for done in taken
        ]
        return sorted(done.job.device for done in taken)

    def give_up(self) -> None:
        """Let the updates that wait be lost."""
        self.ended += self.arrived
        self.arrived = []

    def stop(self) -> Generator[simpy.Event, None, None]:
        """Cut off whoever works; all that is left is then to be booked."""
        at_work = [process for process in self.working if process.is_alive]
        for process in at_work:
            process.interrupt(Cause.SURPLUS)
        if at_work:
            yield self._env.all_of(at_work)
        self.collect()
        self.give_up()

    def settle(self) -> list[JobDone]:
        """Return what is to be booked now, in order of device; from then on it is booked."""
        ended, self.ended = self.ended, []
        return sorted(ended, key=lambda done: (done.job.device, done.job.dispatch.number))

    def earliest_s(self) -> float:
        """Return since when those have worked whose downlink is not booked; now if there are none."""
        jobs = [*self.working.values(), *(done.job for done in (*self.arrived, *self.ended))]
        return min((job.dispatch.start_s for job in jobs), default=self._env.now)

    def _note(self, process: simpy.Event) -> None:
        assert isinstance(process, simpy.Process)
        self._over.append(process)
        if self._next is not None and not self._next.triggered:
            self._next.succeed()


def local_of(done: Sequence[JobDone]) -> LocalRound:
    """Return what these devices did as one round's, in this order."""
    locals_ = [(one.job.dispatch.local, one.job.position) for one in done]
    first = locals_[0][0]

    def column(values: str) -> tuple[Any, ...]:
        return tuple(getattr(local, values)[k] for local, k in locals_)

    return LocalRound(
        column("ids"),
        column("iterations"),
        column("samples"),
        column("down_bits"),
        column("up_bits"),
        {name: tuple(local.scalars[name][k] for local, k in locals_) for name in first.scalars},
        first.after,
        first.averaged,
    )


def columns_of_devices(done: Sequence[JobDone]) -> dict[str, list[Any]]:
    """Return further columns of devices.csv where rounds overlap."""
    return {
        DISPATCH: [one.job.dispatch.number for one in done],
        BEGAN_FROM: [one.job.dispatch.version for one in done],
        STALENESS: [one.staleness if one.taken else None for one in done],
    }


def no_columns_of_devices(parts: int) -> dict[str, list[Any]]:
    """Return these columns, empty, for the devices of a round before training, which overlaps with none."""
    return {name: [None] * parts for name in (DISPATCH, BEGAN_FROM, STALENESS)}


def columns_of_round(done: Sequence[JobDone], working: int) -> dict[str, Any]:
    """Return further columns of rounds.csv where rounds overlap: staleness of what was taken, and who works on."""
    stale = [one.staleness for one in done if one.taken and one.staleness is not None]
    return {
        STALENESS_MEAN: sum(stale) / len(stale) if stale else None,
        STALENESS_MAX: max(stale, default=None),
        WORKING: working,
    }


def mean_reported_loss(done: Sequence[JobDone]) -> float:
    """Return the mean of the losses that came with the updates taken; devices without data report none."""
    jobs = [one.job for one in done if one.taken]
    losses = [job.dispatch.local.scalars[REPORTED_LOSS][job.position] for job in jobs]
    known = [loss for loss in losses if loss is not None]
    return sum(known) / len(known) if known else 0.0
