"""Serve learning traffic first, and background traffic only in slots without learning."""

from dataclasses import dataclass

import numpy as np

from edgefl.channel.schedulers import Flows
from edgefl.channel.schedulers.proportional_fair import ProportionalFair
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class LearningFirst(ProportionalFair):
    """Serve learning flows in a proportionally fair way; background traffic gets the remaining slots.

    Learning has strict priority, as delay-critical bearers do. Without background traffic this scheduler equals
    `proportional_fair`. Without this priority, learning shares the band with background traffic of load rho like any
    other user, and takes 1 / (1 - rho) times as long on average.
    """

    def score(self, flows: Flows) -> FloatArray:
        score = super().score(flows)
        if flows.background is None or flows.background.all():
            return score
        return np.where(flows.background, -1.0, score)
