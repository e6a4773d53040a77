"""Give the whole band to the flow with the best channel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.schedulers import Flows, Scheduler, all_to
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class MaxRate(Scheduler):
    """Give the whole band to the flow with the best channel: most bits per slot, but far flows starve.

    Among equally good channels, such as those at the highest rate of a table, the flow that has been served least
    comes first.

    Source: 5G-LENA, `NrMacSchedulerUeInfoMR` (devices of the same MCS by round robin).
    """

    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        return all_to(self.order(flows)[0], len(flows))

    def order(self, flows: Flows) -> npt.NDArray[np.intp]:
        return np.lexsort((flows.airtime, -flows.efficiency))
