"""Polynomial decay of the learning rate."""

from edgefl.learning.lr_schedules import LrSchedule


class Polynomial(LrSchedule):
    """Lower the learning rate as (1 - progress)^lr_power: linearly for power 1, not at all for power 0.

    Source: the journal paper, section VI, which uses this decay in each session; the paper states no power.
    """

    def shape(self, round_: int, progress: float) -> float:
        return 1 - progress
