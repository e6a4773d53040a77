"""Equal shares of the band for all flows."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from edgefl.channel.schedulers import Flows, Scheduler
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class EqualShare(Scheduler):
    """The same bandwidth for every flow (the journal paper)."""

    per_slot: ClassVar[bool] = False

    def shares(self, flows: Flows) -> FloatArray:
        return np.full(len(flows), 1.0 / len(flows))
