"""Equal shares of the band for all flows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class EqualShare(Scheduler):
    """Give every flow the same bandwidth, as the journal paper does."""

    per_slot: ClassVar[bool] = False

    def shares(self, flows: Flows) -> FloatArray:
        return np.full(len(flows), 1.0 / len(flows))
