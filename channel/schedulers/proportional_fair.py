"""Give the whole band to the flow with the best channel relative to past service."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from edgefl.channel.component import parameter
from edgefl.channel.schedulers import Flows, Scheduler, all_to
from edgefl.channel.units import FloatArray

NOTHING = 1e-300  # a flow with an average below this value has not been served recently


@dataclass(frozen=True)
class ProportionalFair(Scheduler):
    """Give the whole band to the flow with the best channel relative to its recent service.

    The flow with the largest ratio of efficiency to average is served; the average is exponentially weighted, with
    beta per slot. Among flows without recent service, the flow with the best channel is served.

    Source: Jalali, Padovani and Pankaj, IEEE VTC 2000.
    """

    per_slot: ClassVar[bool] = True
    beta: float = parameter(
        0.98, ge=0, lt=1, description="weight of the past; the average covers about 1 / (1 - beta) slots"
    )

    @property
    def memory(self) -> float | None:
        return self.beta

    def shares(self, flows: Flows) -> FloatArray:
        return all_to(self.score(flows).argmax(), len(flows))

    def order(self, flows: Flows) -> npt.NDArray[np.intp]:
        return np.argsort(-self.score(flows), kind="stable")

    def score(self, flows: Flows) -> FloatArray:
        """Return [flows] each flow's efficiency in this slot divided by its average."""
        return np.asarray(flows.efficiency / np.maximum(flows.average, NOTHING))
