"""The end of a session, as decided by its policy."""

import simpy

from edgefl.engine.federation.attendance import Attendance
from edgefl.engine.federation.open_session import OpenSession
from edgefl.engine.sessions import SessionPolicy, SessionState
from edgefl.errors import EdgeflError


class Ending:
    """A session policy, applied to the current session of a cell.

    Attributes:
        seen: first members of the sessions so far.
    """

    def __init__(self, env: simpy.Environment, policy: SessionPolicy, attendance: Attendance) -> None:
        self._env, self._policy, self._attendance = env, policy, attendance
        self.seen: list[frozenset[int]] = []

    @property
    def hears_losses(self) -> bool:
        """Whether the policy uses losses that devices report."""
        return self._policy.report_bits > 0

    def progress(self, session: OpenSession, done: int) -> float:
        """Return the share of a session that is over after this many rounds of training."""
        return self._policy.progress(self._state(session, done))

    def reason_to_end(self, session: OpenSession, done: int) -> str | None:
        """Return the reason for which a session ends now, or None if it continues."""
        return self._policy.reason_to_end(self._state(session, done))

    def reason(self, session: OpenSession, done: int) -> str:
        """Return the reason for which a session ends at its `until_s`."""
        if reason := self.reason_to_end(session, done):
            return reason
        raise EdgeflError(
            f"{type(self._policy).__name__}: until_s() ends a session at {session.until_s} s, but reason_to_end()"
            " continues it: let reason_to_end() return a reason from then on",
            ("sessions",),
        )

    def _state(self, session: OpenSession, done: int) -> SessionState:
        """Return the state of a session that the policy sees after this many rounds of training."""
        return SessionState(
            done,
            frozenset(session.members),
            frozenset(self._attendance.present()),
            tuple(session.losses),
            session.unchanged,
            time_s=self._env.now,
            start_s=session.start_s,
            seen=tuple(self.seen),
            validated=tuple(session.validated),
        )
