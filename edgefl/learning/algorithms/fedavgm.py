"""FedAvg with server momentum."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, ServerState, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class FedAvgM(FedAvg):
    """Step with server momentum: v+ = beta v + Delta, w+ = w + server_lr v+; Delta is the devices' mean change.

    Hsu, Qi and Brown, Measuring the Effects of Non-Identical Data Distribution for Federated Visual
    Classification, 2019. v is reset to 0 at the start of each session, because it points along the previous session's
    path, on which the opening model need not lie. With beta = 0 and server_lr = 1 this is FedAvg. With a downlink
    codec, devices start from different models; the server then adds the mean of their changes to its own model.
    """

    uses: ClassVar[str] = "mean"

    beta: float = Field(0.9, ge=0, lt=1, description="beta: decay factor of the server's momentum")
    server_lr: float = Field(1.0, gt=0, le=1e9, description="the server's step size")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {"momentum": start.new_zeros(start.shape)}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        momentum = self.beta * state["momentum"] + updates.mean_change()
        return model + self.server_lr * momentum, {"momentum": momentum}
