"""A constant learning rate."""

from edgefl.learning.lr_schedules import LrSchedule


class Constant(LrSchedule):
    """Keep the learning rate at `learning.local.lr`, after a warm-up if there is one."""

    def shape(self, round_: int, progress: float) -> float:
        return 1.0
