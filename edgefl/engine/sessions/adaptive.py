"""End a session when the data seem to have changed."""

from typing import ClassVar

from pydantic import Field

from edgefl.engine.sessions import BoundedPolicy, SessionState


class Adaptive(BoundedPolicy):
    """A session ends when Page's CUSUM test finds that the received model's loss on the participants' data has risen.

    Each participant reports the loss of the global model on its first mini-batch, before training; the forward pass
    is part of its first iteration. The report adds 32 bits to each upload. With x_t the mean reported loss relative
    to the session's lowest loss so far, S_t = max(0, S_{t-1} + x_t - 1 - slack); a session ends when S_t >=
    threshold. Relative rises of the loss below `slack` do not accumulate.

    Source: Page, Biometrika 1954. The journal paper names adaptive triggers as future work.
    """

    slack: float = Field(
        0.1, ge=0, le=1e6, description="tolerated relative rise of the loss; only the excess counts"
    )
    threshold: float = Field(0.5, gt=0, le=1e6, description="sum of relative rises that ends the session")
    evidence_bits: ClassVar[int] = 32  # size of one report, bits

    @property
    def report_bits(self) -> int:
        return self.evidence_bits

    def evidence_of(self, state: SessionState) -> str | None:
        return "adaptive" if self.evidence(state.losses) >= self.threshold else None

    def evidence(self, losses: tuple[float, ...]) -> float:
        """Return S_t, the sum of relative rises, from the losses reported in a session's rounds, oldest first."""
        evidence, lowest = 0.0, float("inf")
        for loss in losses:
            lowest = min(lowest, loss)
            evidence = max(0.0, evidence + loss / lowest - 1.0 - self.slack) if lowest > 0 else 0.0
        return evidence
