"""Polynomial decay of the learning rate."""

from edgefl.learning.lr_schedules import LrSchedule


class Polynomial(LrSchedule):
    """Lower the learning rate as (1 - progress)^power by `lr_power`: 1 is a straight line, 0 a constant rate.

    The journal paper, section VI, within a session; the paper gives no power.
    """

    def shape(self, round_: int, progress: float) -> float:
        return 1 - progress
