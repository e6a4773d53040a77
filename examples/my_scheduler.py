"""Serve the shortest job first."""

from dataclasses import dataclass
from typing import ClassVar

from edgefl.channel.component import parameter
from edgefl.channel.schedulers import Flows, Scheduler, all_to
from edgefl.channel.units import FloatArray


@dataclass(frozen=True)
class ShortestJobFirst(Scheduler):
    """Give the band to the flow that would finish first if it were alone, except for a share that all flows divide.

    Without this share, the mean completion time is minimal on channels without fading (Schrage, Operations Research
    1968), but the last flow waits for all others.
    """

    per_slot: ClassVar[bool] = True

    for_all: float = parameter(
        0.1, ge=0, le=1, description="share of the band divided equally among all flows"
    )

    def shares(self, flows: Flows) -> FloatArray:
        alone = flows.remaining_bits / flows.mean_rate(1.0)
        return self.for_all / len(flows) + (1.0 - self.for_all) * all_to(alone.argmin(), len(flows))
