"""A session ends when enough devices have come and gone."""

from pydantic import Field

from edgefl.engine.sessions import BoundedPolicy, SessionState


class Membership(BoundedPolicy):
    """Ends once arrivals plus departures since the session began reach a share of its first members.

    The change is the symmetric difference of the two sets: a device that left and came back has not
    changed anything. `max_rounds` bounds sessions in which nobody comes or goes.
    """

    changed_share: float = Field(
        0.3, gt=0, le=2, description="devices gone plus devices new, over devices at the start"
    )

    def evidence_of(self, state: SessionState) -> str | None:
        changed = len(state.members_at_start ^ state.members_now)
        return "membership" if changed >= self.changed_share * len(state.members_at_start) else None
