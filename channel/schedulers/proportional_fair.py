"""The best channel, compared with what it was served."""

from dataclasses import dataclass
from typing import ClassVar

from channel.component import parameter
from channel.schedulers import Flows, Scheduler, all_to
from channel.units import FloatArray


@dataclass(frozen=True)
class ProportionalFair(Scheduler):
    """The whole band to the flow whose channel is best compared with what it was served of late.

    The largest efficiency over average wins; the average forgets by beta per slot.

    Source: Jalali, Padovani and Pankaj, IEEE VTC 2000.
    """

    per_slot: ClassVar[bool] = True
    beta: float = parameter(
        0.98, ge=0, lt=1, description="weight of the past; 1 / (1 - beta) slots are remembered"
    )

    @property
    def memory(self) -> float | None:
        return self.beta

    def shares(self, flows: Flows) -> FloatArray:
        return all_to((flows.efficiency / flows.average).argmax(), len(flows))
