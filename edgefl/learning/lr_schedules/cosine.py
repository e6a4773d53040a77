"""Cosine decay of the learning rate."""

import math

from edgefl.learning.lr_schedules import LrSchedule


class Cosine(LrSchedule):
    """Lower the learning rate along half a cosine, (1 + cos(pi progress)) / 2: slowly at first and at the end.

    Loshchilov and Hutter, SGDR, ICLR 2017, equation 5. With `learning.local.lr_power` 1, the default,
    `learning.local.lr_floor` is the paper's smallest rate divided by the largest. Each session restarts the decay,
    unless `rounds` is set.
    """

    def shape(self, round_: int, progress: float) -> float:
        return (1 + math.cos(math.pi * progress)) / 2
