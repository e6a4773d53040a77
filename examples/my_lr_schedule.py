"""Decay with the root of the rounds."""

from pydantic import Field

from edgefl.learning.lr_schedules import LrSchedule


class InverseRoot(LrSchedule):
    """The rate falls as 1 / sqrt(1 + (t - 1) / first): no end of training has to be known.

    The rate of stochastic subgradient methods for convex losses, as of Zinkevich (ICML 2003).
    """

    first: float = Field(1.0, gt=0, le=1e9, description="rounds after which it has fallen by the root of 2")

    def shape(self, round_: int, progress: float) -> float:
        return (1 + (round_ - 1) / self.first) ** -0.5
