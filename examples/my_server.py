"""Make a model when most of the devices have answered."""

import math

from pydantic import Field

from edgefl.engine.servers import ServerState, WeighingServer


class Quorum(WeighingServer):
    """A model is made when a share of all devices at work have answered; the others go on, and count later.

    Devices begin together, right after a model. Nobody has to know beforehand how long a round should last, as for a
    deadline, and a slow device delays no one while the quorum is met. After Bonawitz et al. (MLSys 2019), whose
    server goes on with 80 % of the devices it asked, but loses the rest.
    """

    share: float = Field(0.75, gt=0, le=1, description="of the devices at work, which have to answer")

    def room(self, state: ServerState) -> int:
        begins = state.now_s == state.since_s or not (state.working or state.arrived)
        return super().room(state) if begins else 0

    def ready(self, state: ServerState) -> int:
        wanted = math.ceil(self.share * (state.working + state.arrived))
        return state.arrived if state.arrived >= wanted else 0
