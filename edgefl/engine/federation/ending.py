"""Decide the end of a session by its policy, and the end of a federation's run by its scores."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import simpy
from pydantic import Field, model_validator

from edgefl.config.answers import wrong
from edgefl.config.scenario_fields import Section
from edgefl.engine.derived import Derived
from edgefl.engine.federation.attendance import Attendance
from edgefl.engine.federation.open_session import OpenSession
from edgefl.engine.sessions import SessionPolicy, SessionState, since_best
from edgefl.errors import EdgeflError


class StopSettings(Section):
    """End a federation's run in a cell at a score limit, before the sessions or the duration end the run.

    A score comes from a round's test, on the validation samples (learning.evaluation.validation) if there are any and
    otherwise on the test samples. The whole run ends once all servers have ended.
    """

    accuracy: float | None = Field(
        None,
        gt=0,
        le=1,
        description="accuracy, or the task's own score, at which the run ends; null: no limit",
    )
    patience: int | None = Field(
        None,
        ge=1,
        le=1_000_000,
        description="the run ends after this many tests without a new best score of the session; null: no limit",
    )

    @model_validator(mode="after")
    def _says_when(self) -> Self:
        if self.accuracy is None and self.patience is None:
            raise ValueError("sets no limit: set accuracy, patience or both, or leave stop out")
        return self

    def reason_to_end(self, scores: Sequence[float]) -> str | None:
        """Return the reason why the run ends after these scores of a session, or None if the run goes on."""
        if self.accuracy is not None and scores and scores[-1] >= self.accuracy:
            return f"accuracy {self.accuracy:g} reached"
        if self.patience is not None and since_best(scores) >= self.patience:
            return f"no progress in {self.patience:,} tests"
        return None


class Stopped(NamedTuple):
    """The reason why scores ended a server's run, and the session and round of the last test."""

    reason: str
    session: int
    round: int
    time_s: float


class Ending:
    """The session policy for the current session of a cell, and the score limits that end the cell's run.

    Attributes:
        seen: ids of the devices present at the start of each session so far.
        stopped: how the scores ended the run, or None while the run goes on.
    """

    def __init__(
        self,
        env: simpy.Environment,
        policy: SessionPolicy,
        attendance: Attendance,
        stop: StopSettings | None = None,
    ) -> None:
        self._env, self._policy, self._attendance, self._stop = env, policy, attendance, stop
        self.seen: list[frozenset[int]] = []
        self.stopped: Stopped | None = None
        # keep the sets: building one of a million ids takes 0.1 s, and the ids rarely change between rounds
        self._members, self._present = Derived(_as_set), Derived(_as_set)

    @property
    def hears_losses(self) -> bool:
        """Whether the policy uses losses that devices report."""
        return self._policy.report_bits > 0

    def progress(self, session: OpenSession, done: int) -> float:
        """Return the fraction of a session that has passed after a number of training rounds."""
        return self._policy.progress(self._state(session, done))

    def reason_to_end(self, session: OpenSession, done: int) -> str | None:
        """Return the reason why a session ends now, or None if it continues."""
        if self._stop is not None and (reason := self._stop.reason_to_end(session.scores)):
            self.stopped = Stopped(reason, session.number, done, self._env.now)
            return reason
        answer = self._policy.reason_to_end(self._state(session, done))
        if not (answer is None or isinstance(answer, str)):
            raise wrong(self._policy.reason_to_end, answer, "a reason as a string, or None", "sessions")
        return answer

    def reason(self, session: OpenSession, done: int) -> str:
        """Return the reason why a session ends at its `until_s`."""
        if reason := self.reason_to_end(session, done):
            return reason
        raise EdgeflError(
            f"{type(self._policy).__name__}: until_s() ends a session at {session.until_s} s, but reason_to_end()"
            " continues it: let reason_to_end() return a reason from then on",
            ("sessions",),
        )

    def _state(self, session: OpenSession, done: int) -> SessionState:
        """Return the state of a session, as passed to the policy, after a number of training rounds."""
        return SessionState(
            done,
            self._members(session.members),
            self._present(self._attendance.present()),
            tuple(session.losses),
            session.unchanged,
            time_s=self._env.now,
            start_s=session.start_s,
            seen=tuple(self.seen),
            validated=tuple(session.validated),
        )


def _as_set(ids: Sequence[int]) -> frozenset[int]:
    return frozenset(ids)
