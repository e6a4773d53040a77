"""Define a finished round; if rounds overlap, it is all work that ended between two models."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import simpy

from edgefl.contract import Evaluation, LocalRound, Stage, StageFacts
from edgefl.engine.air.gains import RoundKey
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.federation.work import JobDone
from edgefl.engine.parts import NO_ACCESS, Access, Part


class Columns(NamedTuple):
    """Additional columns about a round, with one value per column for rounds.csv and one per job for devices.csv."""

    of_round: Mapping[str, Any] = {}
    of_devices: Mapping[str, Sequence[Any]] = {}


NOTHING = Columns()


class _Exchanged(Protocol):
    """Exchange of models between a cell and other cells after a round."""

    @property
    def is_new(self) -> bool:
        """Whether the exchange brought a new model."""


@dataclass(frozen=True)
class Made:
    """A finished round; if rounds overlap, all work that ended between two models.

    key: session, phase and number. facts: properties of the stage. turn: rounds of the global model begun so far.
    version: version of the model after the round. jobs: the ended jobs, at least one. local: work of each device,
    in the order of jobs. working: devices still at work. busy: these devices, and those whose update still waits,
    each with the start of its work. overlaps: whether rounds may overlap. unbooked_s: earliest start of a job
    that is not among `jobs`; now if there is none. exchanged: exchange of models, or None.
    """

    key: RoundKey
    facts: StageFacts
    turn: int
    version: int
    start_s: float
    jobs: Sequence[JobDone]
    local: LocalRound
    working: int
    busy: Mapping[int, float]
    overlaps: bool
    unbooked_s: float
    evaluation: Evaluation | None
    aggregated: bool
    exchanged: _Exchanged | None

    @cached_property
    def parts(self) -> list[Part]:
        """Each device's part of the round, from radio and processor."""
        return [job.part for job in self.jobs]

    @cached_property
    def accesses(self) -> list[tuple[Access, Access]]:
        """Access before each part's downlink and uplink."""
        return [
            (part.downlink.access, part.uplink.access if part.uplink else NO_ACCESS) for part in self.parts
        ]

    @cached_property
    def taken(self) -> list[bool]:
        """Whether each job's update was aggregated."""
        return [job.taken for job in self.jobs]

    @property
    def opened(self) -> RadioRound:
        """The round on the radio, or the last of several overlapping rounds."""
        return self.jobs[-1].dispatch.opened


Observer = Callable[[Made], Columns]
# (stage, whether its last round was aggregated) -> exchange
Exchange = Callable[[Stage, bool], Generator[simpy.Event, None, _Exchanged | None]]
