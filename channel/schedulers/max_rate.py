"""The whole band to the best channel."""

from dataclasses import dataclass
from typing import ClassVar

from edgefl.channel.schedulers import Flows, Scheduler, all_to
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class MaxRate(Scheduler):
    """The whole band to the flow with the best channel: most bits per slot, and far flows starve."""

    per_slot: ClassVar[bool] = True

    def shares(self, flows: Flows) -> FloatArray:
        return all_to(flows.efficiency.argmax(), len(flows))
