"""Aggregate when most devices have answered."""

import math

from pydantic import Field

from edgefl.engine.servers import ServerState, WeighingServer


class Quorum(WeighingServer):
    """Aggregate when a share of all busy devices have answered; the others continue, and count in a later model.

    Devices start together, right after an aggregation. Unlike a deadline, this needs no round length in advance, and
    a slow device delays no other device while the quorum is met. Similar to Bonawitz et al. (MLSys 2019), whose
    server continues with 80 % of the selected devices, but discards the rest.
    """

    share: float = Field(0.75, gt=0, le=1, description="share of the devices at work that must answer")

    def room(self, state: ServerState) -> int:
        begins = state.now_s == state.since_s or not (state.working or state.arrived)
        return super().room(state) if begins else 0

    def ready(self, state: ServerState) -> int:
        wanted = math.ceil(self.share * (state.working + state.arrived))
        return state.arrived if state.arrived >= wanted else 0
