"""End a session when learning has stalled."""

from pydantic import Field

from edgefl.engine.sessions import BoundedPolicy, SessionState


class Plateau(BoundedPolicy):
    """End a session when the loss that devices report has not fallen for some rounds, as early stopping does.

    Each participant reports the loss of the model it receives, in 32 more bits of its upload. Source: Prechelt,
    Early stopping - but when?, 1998.
    """

    patience: int = Field(5, ge=1, description="rounds without a new lowest loss")
    least_fall: float = Field(0.01, ge=0, lt=1, description="a fall that counts, relative to the lowest loss")

    @property
    def report_bits(self) -> int:
        return 32

    def evidence_of(self, state: SessionState) -> str | None:
        before, recent = state.losses[: -self.patience], state.losses[-self.patience :]
        stalled = before and min(recent) > (1.0 - self.least_fall) * min(before)
        return "plateau" if stalled else None
