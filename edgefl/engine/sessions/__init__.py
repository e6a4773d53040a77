"""Session policies, which end sessions."""

import math
from abc import abstractmethod
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import ClassVar, Self

from pydantic import Field, model_validator

from edgefl.config.component import Component

__all__ = ["BoundedPolicy", "SessionPolicy", "SessionState", "TimedPolicy"]


@dataclass(frozen=True)
class SessionState:
    """The state of a session between two rounds, as far as a policy sees it."""

    rounds: int  # number of training rounds of this session so far, without probes
    members_at_start: Set[int]
    members_now: Set[int]
    losses: tuple[float, ...] = ()  # mean reported loss of each round so far, if the policy needs losses
    unchanged: int = 0  # rounds in which too few updates arrived to change the model
    time_s: float = 0.0  # current time
    start_s: float = 0.0  # start of the session
    seen: tuple[Set[int], ...] = ()  # members at the start of each earlier session of this cell
    validated: tuple[float, ...] = ()  # scores on the validation samples so far, if there are any


class SessionPolicy(Component):
    """Base class of all session policies; called after each round."""

    # whether the policy uses scores on validation samples, which need learning.evaluation.validation
    asks_validation: ClassVar[bool] = False

    count: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="S: number of sessions of the run; if left out, as many as begin within duration_s",
    )

    @property
    @abstractmethod
    def longest(self) -> int | None:
        """Maximum number of rounds in a session, or None if rounds do not limit its length."""

    def until_s(self, start_s: float) -> float:
        """Return the time after which a session that began at start_s starts no new round, or inf.

        A session has at least one round of training. At the returned time, or at the end of a round that is then
        under way, `reason_to_end` is called and must return a reason.
        """
        return math.inf

    def progress(self, state: SessionState) -> float:
        """Return the fraction of the session that has passed, in [0, 1); the learning rate decays with it."""
        return state.rounds / self.longest if self.longest else 0.0

    @property
    def report_bits(self) -> int:
        """Bits that each participant adds to its upload to report its loss; 0 without reports."""
        return 0

    @abstractmethod
    def reason_to_end(self, state: SessionState) -> str | None:
        """Return the reason why the session ends now, or None if it continues."""


class TimedPolicy(SessionPolicy):
    """Base class of policies that end a session at a given time, regardless of the number of rounds."""

    @property
    def longest(self) -> None:
        return None

    @abstractmethod
    def until_s(self, start_s: float) -> float:
        """Return the end, later than start_s, of a session that began at start_s."""

    @property
    @abstractmethod
    def reason(self) -> str:
        """Reason why sessions end, in one word."""

    def progress(self, state: SessionState) -> float:
        """Return the share of the session's time that has passed, including the probes before training."""
        share = (state.time_s - state.start_s) / (self.until_s(state.start_s) - state.start_s)
        return min(share, math.nextafter(1.0, 0.0))  # probes may have taken longer than the session

    def reason_to_end(self, state: SessionState) -> str | None:
        return self.reason if state.time_s >= self.until_s(state.start_s) else None


class BoundedPolicy(SessionPolicy):
    """Base class of policies that look for a reason to end a session, between a minimum and a maximum length.

    A round in which too few updates arrive to change the model does not count towards `min_rounds`, which ensures
    training, but does count towards `max_rounds`, which ensures that sessions end.
    """

    min_rounds: int = Field(
        5, ge=1, le=1_000_000, description="shortest session, in rounds that changed the model"
    )
    max_rounds: int = Field(200, ge=1, le=1_000_000, description="longest session, in rounds")

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
        """Return the reason to end a session of at least min_rounds, or None."""


def since_best(scores: Sequence[float]) -> int:
    """Return the number of scores after the first best score, or of all scores if all are nan."""
    best, since = -math.inf, 0
    for score in scores:
        best, since = (score, 0) if score > best else (best, since + 1)
    return since
