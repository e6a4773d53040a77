"""A session ends when the population has changed enough."""

from typing import Self

from pydantic import Field, model_validator

from edgefl.engine.sessions import SessionPolicy, SessionState


class Membership(SessionPolicy):
    """Ends once arrivals plus departures since the session began reach a share of its first members.

    The change is the symmetric difference of the two sets: a device that left and came back has not
    changed anything. A longest length bounds sessions of a population that stands still.
    """

    changed_share: float = Field(
        0.3, gt=0, le=2, description="devices gone plus devices new, over devices at the start"
    )
    min_rounds: int = Field(5, ge=1, description="shortest session, rounds")
    max_rounds: int = Field(200, ge=1, description="longest session, rounds")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if self.min_rounds > self.max_rounds:
            raise ValueError("min_rounds must not exceed max_rounds")
        return self

    @property
    def longest(self) -> int:
        return self.max_rounds

    def reason_to_end(self, state: SessionState) -> str | None:
        if state.rounds < self.min_rounds:
            return None
        changed = len(state.members_at_start ^ state.members_now)
        if changed >= self.changed_share * len(state.members_at_start):
            return "membership"
        return "max_rounds" if state.rounds >= self.max_rounds else None
