"""End a session when enough of its devices have left or new devices have come."""

from pydantic import Field

from edgefl.engine.sessions import BoundedPolicy, SessionState


class Membership(BoundedPolicy):
    """A session ends once arrivals plus departures since its start reach a share of the number of its first members.

    Arrivals and departures are the symmetric difference of the first and the present members, so a device that left
    and came back does not count. `max_rounds` bounds sessions without arrivals and departures.
    """

    changed_share: float = Field(
        0.3, gt=0, le=2, description="departed plus new devices, as a share of the devices at the start"
    )

    def evidence_of(self, state: SessionState) -> str | None:
        changed = len(state.members_at_start ^ state.members_now)
        return "membership" if changed >= self.changed_share * len(state.members_at_start) else None
