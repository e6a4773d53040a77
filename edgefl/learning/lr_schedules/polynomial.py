"""Polynomial decay of the learning rate."""

from edgefl.learning.lr_schedules import LrSchedule


class Polynomial(LrSchedule):
    """Lower the learning rate as (1 - progress)^lr_power: 1 gives a straight line, 0 a constant rate.

    Source: the journal paper, section VI, which uses this decay in each session; the paper gives no power.
    """

    def shape(self, round_: int, progress: float) -> float:
        return 1 - progress
