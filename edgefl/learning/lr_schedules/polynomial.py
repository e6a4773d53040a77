"""Polynomial decay."""

from edgefl.learning.lr_schedules import LrSchedule


class Polynomial(LrSchedule):
    """Lower the rate as (1 - progress)^power, with `lr_power`: 1 is a straight line, 0 keeps it constant.

    The journal paper, section VI, within a session; the paper gives no power.
    """

    def shape(self, round_: int, progress: float) -> float:
        return 1 - progress
