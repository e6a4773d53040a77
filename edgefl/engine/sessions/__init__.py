"""Session policies: when a session ends."""

import math
from abc import abstractmethod
from collections.abc import Set
from dataclasses import dataclass
from typing import ClassVar, Self

from pydantic import Field, model_validator

from edgefl.config.component import Component

__all__ = ["BoundedPolicy", "SessionPolicy", "SessionState", "TimedPolicy"]


@dataclass(frozen=True)
class SessionState:
    """The state of a session between two rounds, as far as a policy may know it."""

    rounds: int  # training rounds of this session so far, probes not counted
    members_at_start: Set[int]
    members_now: Set[int]
    losses: tuple[float, ...] = ()  # reports of the rounds so far, if the policy asked for them
    unchanged: int = 0  # those among the rounds in which too few updates arrived to change the model
    time_s: float = 0.0  # now
    start_s: float = 0.0  # when the session began
    seen: tuple[Set[int], ...] = ()  # members at the start of each earlier session of this cell
    validated: tuple[float, ...] = ()  # scores on the validation samples so far, if there are any


class SessionPolicy(Component):
    """Base of all session policies; asked after each round."""

    # whether it goes by scores on validation samples: refused without learning.evaluation.validation
    asks_validation: ClassVar[bool] = False

    count: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="S: number of sessions of the run; none: as many as begin within duration_s",
    )

    @property
    @abstractmethod
    def longest(self) -> int | None:
        """The most rounds that a session can have; None: its length is no number of rounds."""

    def until_s(self, start_s: float) -> float:
        """Return the time at which rounds stop beginning in a session that began at start_s; inf: never.

        A session has one round of training even so. At that time, or when the round that is then under way has
        ended, `reason_to_end` is asked, and has to name one.
        """
        return math.inf

    def progress(self, state: SessionState) -> float:
        """Return the share of the session that is over, in [0, 1): the learning rate decays with it."""
        return state.rounds / self.longest if self.longest else 0.0

    @property
    def report_bits(self) -> int:
        """The bits that each participant adds to its upload to report its loss; 0: no reports."""
        return 0

    @abstractmethod
    def reason_to_end(self, state: SessionState) -> str | None:
        """Return why the session ends now; None: it goes on."""


class TimedPolicy(SessionPolicy):
    """Base of policies that end a session at a time, however many rounds it has had."""

    @property
    def longest(self) -> None:
        return None

    @abstractmethod
    def until_s(self, start_s: float) -> float:
        """Return when a session ends that began at start_s: later than that."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Why sessions end, in a word."""

    def progress(self, state: SessionState) -> float:
        """Return the share of the session's time that is over; probes before its training have taken theirs."""
        share = (state.time_s - state.start_s) / (self.until_s(state.start_s) - state.start_s)
        return min(share, math.nextafter(1.0, 0.0))  # the first round of training may come late

    def reason_to_end(self, state: SessionState) -> str | None:
        return self.reason if state.time_s >= self.until_s(state.start_s) else None


class BoundedPolicy(SessionPolicy):
    """Base of policies that end a session on evidence, within bounds on its length.

    A round that does not change the model, for want of updates, does not count towards the shortest session:
    that one is there to let a model be trained. It does count towards the longest one, so that sessions end.
    """

    min_rounds: int = Field(
        5, ge=1, le=1_000_000, description="shortest session, rounds that changed the model"
    )
    max_rounds: int = Field(200, ge=1, le=1_000_000, description="longest session, rounds")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_rounds > self.max_rounds:
            raise ValueError("min_rounds must not exceed max_rounds")
        return self

    @property
    def longest(self) -> int:
        return self.max_rounds

    def reason_to_end(self, state: SessionState) -> str | None:
        learnt = state.rounds - state.unchanged
        ended = self.evidence_of(state) if learnt >= self.min_rounds else None
        return ended or ("max_rounds" if state.rounds >= self.max_rounds else None)

    @abstractmethod
    def evidence_of(self, state: SessionState) -> str | None:
        """Return why a session of at least min_rounds should end; None: it should not."""
