"""End a session after a fixed time."""

from pydantic import Field

from edgefl.engine.sessions import TimedPolicy


class FixedInterval(TimedPolicy):
    """Every session lasts a fixed time from the start of its first round, regardless of the number of rounds.

    No round begins at or after a session's end; a round under way at that time is completed. The next session begins
    with the next round.
    """

    length_s: float = Field(ge=1e-3, le=1e9, description="length of a session")

    @property
    def reason(self) -> str:
        return "interval"

    def until_s(self, start_s: float) -> float:
        return start_s + self.length_s
