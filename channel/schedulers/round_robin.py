"""Give the whole band to one flow after another."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.schedulers import Flows, Scheduler, all_to
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class RoundRobin(Scheduler):
    """Give the whole band to the flow with the least airtime so far, or, in a tie, to the flow that joined first.

    The scheduler counts airtime instead of turns, so that no flow always gets the special slots of a TDD frame. While
    flows are present together, their airtimes never diverge by more than a slot.
    """

    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        return all_to(flows.airtime.argmin(), len(flows))

    def order(self, flows: Flows) -> npt.NDArray[np.intp]:
        return np.argsort(flows.airtime, kind="stable")
