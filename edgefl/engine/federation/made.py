"""What has become of a round, or where rounds overlap, all that has ended from one model to the next, as a value."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import simpy

from edgefl.contract import Evaluation, LocalRound, Stage, StageFacts
from edgefl.engine.air.gains import RoundKey
from edgefl.engine.air.radio_round import RadioRound
from edgefl.engine.air.sent_time import SentTime
from edgefl.engine.federation.work import JobDone
from edgefl.engine.parts import Part


class Columns(NamedTuple):
    """Further columns of rounds.csv, a value each, and of devices.csv, a value for each job."""

    of_round: Mapping[str, Any] = {}
    of_devices: Mapping[str, Sequence[Any]] = {}


NOTHING = Columns()


class Exchanged(Protocol):
    """What a cell has exchanged with others after a round."""

    @property
    def is_new(self) -> bool:
        """Whether a new model came of it."""


@dataclass(frozen=True)
class Made:
    """A round that is over, or where rounds overlap, all that ended from one model to the next.

    key: session, phase and number. facts: of its stage. turn: rounds of the global model that have begun so far.
    version: of the model after it. jobs: at least one. local: what each device did, in the order of jobs. working:
    how many work on. absent: further columns about devices that had no link when it began. exchanged: None: nothing.
    billed: where rounds overlap, what has been sent so far; None: they do not.
    """

    key: RoundKey
    facts: StageFacts
    turn: int
    version: int
    start_s: float
    jobs: Sequence[JobDone]
    local: LocalRound
    working: int
    evaluation: Evaluation | None
    aggregated: bool
    absent: Mapping[str, int]
    exchanged: Exchanged | None
    billed: SentTime | None

    @property
    def overlaps(self) -> bool:
        """Whether it may overlap with others."""
        return self.billed is not None

    @cached_property
    def parts(self) -> list[Part]:
        """What each device did, as the radio and its processor saw it."""
        return [job.part for job in self.jobs]

    @cached_property
    def taken(self) -> list[bool]:
        """Whether the update of each part was aggregated."""
        return [job.taken for job in self.jobs]

    @property
    def opened(self) -> RadioRound:
        """The round on the radio; of several, the last."""
        return self.jobs[-1].dispatch.opened


Observer = Callable[[Made], Columns]
# of a stage, after a round that was aggregated or not
Exchange = Callable[[Stage, bool], Generator[simpy.Event, None, Exchanged | None]]
