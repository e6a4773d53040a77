"""Decay in steps."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.lr_schedules import LrSchedule


class StepDecay(LrSchedule):
    """The rate is multiplied by `factor` every so many rounds: factor^((t - 1) // every) in round t."""

    every: int = Field(30, ge=1, le=10**9, description="rounds between two steps")
    factor: ClassVar[float] = 0.1  # by which each step multiplies the rate: PyTorch's StepLR

    def shape(self, round_: int, progress: float) -> float:
        return self.factor ** ((round_ - 1) // self.every)
