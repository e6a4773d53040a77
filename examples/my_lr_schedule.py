"""Decay the learning rate with the square root of the number of rounds."""

from pydantic import Field

from edgefl.learning.lr_schedules import LrSchedule


class InverseRoot(LrSchedule):
    """Decrease the rate as 1 / sqrt(1 + (t - 1) / first), without knowing the end of training.

    This is the rate of stochastic subgradient methods for convex losses (Zinkevich, ICML 2003).
    """

    first: float = Field(
        1.0, gt=0, le=1e9, description="rounds after which the rate has fallen by the square root of 2"
    )

    def shape(self, round_: int, progress: float) -> float:
        return (1 + (round_ - 1) / self.first) ** -0.5
