"""A constant rate."""

from edgefl.learning.lr_schedules import LrSchedule


class Constant(LrSchedule):
    """The rate stays `learning.local.lr`, after its warm-up if there is one."""

    def shape(self, round_: int, progress: float) -> float:
        return 1.0
