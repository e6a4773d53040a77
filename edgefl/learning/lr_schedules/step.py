"""Decay of the learning rate in steps."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.lr_schedules import LrSchedule


class StepDecay(LrSchedule):
    """Multiply the learning rate by `factor` every `every` rounds: in round t by factor^((t - 1) // every) in all."""

    every: int = Field(30, ge=1, le=10**9, description="number of rounds between two steps")
    factor: ClassVar[float] = 0.1  # factor by which each step multiplies the rate, as in PyTorch's StepLR

    def shape(self, round_: int, progress: float) -> float:
        return self.factor ** ((round_ - 1) // self.every)
