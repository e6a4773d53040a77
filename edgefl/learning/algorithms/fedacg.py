"""Accelerated client gradient."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Received, Receivers, ServerState, Updates, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class FedAcg(FedAvg):
    """Move the model by server momentum to w + lambda m, where local training starts; pull local models towards it.

    Kim et al., FedACG, CVPR 2024: the local loss contains beta/2 |w_k - (w + lambda m)|^2; the server takes
    m+ = lambda m + Delta and w+ = w + m+, where Delta is the mean change from w + lambda m. (So w+ is the mean of the
    local models.) A transfer carries one vector, w + lambda m.

    m is reset to 0 at the start of each session, because it points along the previous session's path, on which the
    opening model need not lie. With lambda = beta = 0 this is FedAvg.
    """

    uses: ClassVar[str] = "mean"

    momentum: float = Field(0.5, ge=0, lt=1, description="lambda: decay factor of the server's momentum")
    beta: float = Field(0.1, ge=0, le=1e9, description="weight of the pull towards the received model")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {"momentum": start.new_zeros(start.shape)}

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        return Received(model + self.momentum * state["momentum"])

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        return grads.add_(local, alpha=self.beta).sub_(start, alpha=self.beta)

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        momentum = self.momentum * state["momentum"] + updates.mean_change()
        return model + momentum, {"momentum": momentum}
