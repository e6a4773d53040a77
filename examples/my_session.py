"""End a session when learning stalls."""

from pydantic import Field

from edgefl.engine.sessions import BoundedPolicy, SessionState


class Plateau(BoundedPolicy):
    """End a session when the reported loss has not fallen for some rounds, as in early stopping.

    Each participant reports the loss of the model it receives, with 32 more bits of upload. Source: Prechelt,
    Early stopping - but when?, 1998.
    """

    patience: int = Field(5, ge=1, description="number of rounds without a new lowest loss")
    least_fall: float = Field(
        0.01, ge=0, lt=1, description="minimum decrease that counts, relative to the lowest loss"
    )

    @property
    def report_bits(self) -> int:
        return 32

    def evidence_of(self, state: SessionState) -> str | None:
        before, recent = state.losses[: -self.patience], state.losses[-self.patience :]
        stalled = before and min(recent) > (1.0 - self.least_fall) * min(before)
        return "plateau" if stalled else None
