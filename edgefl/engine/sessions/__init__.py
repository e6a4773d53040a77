"""Session policies: when a session ends."""

from abc import abstractmethod
from collections.abc import Set
from dataclasses import dataclass
from typing import Self

from pydantic import Field, model_validator

from edgefl.component import Component


@dataclass(frozen=True)
class SessionState:
    """The state of a session between two rounds, as far as a policy may know it."""

    rounds: int  # training rounds of this session so far, probes not counted
    members_at_start: Set[int]
    members_now: Set[int]
    losses: tuple[float, ...] = ()  # reports of the rounds so far, if the policy asked for them
    unchanged: int = 0  # those among the rounds in which too few updates arrived to change the model


class SessionPolicy(Component):
    """Base of all session policies; asked after each round."""

    count: int = Field(ge=1, le=1_000_000, description="S: number of sessions of the run")

    @property
    @abstractmethod
    def longest(self) -> int:
        """The most rounds that a session can have; the learning rate decays over this number."""

    @property
    def report_bits(self) -> int:
        """The bits that each participant adds to its upload to report its loss; 0: no reports."""
        return 0

    @abstractmethod
    def reason_to_end(self, state: SessionState) -> str | None:
        """Return why the session ends now; None: it goes on."""


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
