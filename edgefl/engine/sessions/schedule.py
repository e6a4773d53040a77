"""End a session after a fixed number of rounds."""

from pydantic import Field

from edgefl.engine.sessions import SessionPolicy, SessionState


class Schedule(SessionPolicy):
    """Every session has T rounds. Source: the journal paper, section III-A."""

    rounds: int = Field(ge=1, le=1_000_000, description="T: rounds per session")

    @property
    def longest(self) -> int:
        return self.rounds

    def reason_to_end(self, state: SessionState) -> str | None:
        return "schedule" if state.rounds >= self.rounds else None
