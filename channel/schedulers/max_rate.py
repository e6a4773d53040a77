"""Give the whole band to the flow with the best channel."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.schedulers import Flows, Scheduler, all_to
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class MaxRate(Scheduler):
    """Give the whole band to the flow with the best channel; this sends the most bits, but starves distant devices.

    If channels are equally good, for example at a table's highest rate, the flow with the least airtime is served.

    Source: 5G-LENA, `NrMacSchedulerUeInfoMR` (devices with the same MCS take turns).
    """

    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        return all_to(self.order(flows)[0], len(flows))

    def order(self, flows: Flows) -> npt.NDArray[np.intp]:
        return np.lexsort((flows.airtime, -flows.efficiency))
