"""FedAvg with a proximal term."""

from pydantic import Field

from edgefl.learning.algorithms import ServerState, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class FedProx(FedAvg):
    """Add mu/2 |w - w_start|^2 to the local loss. Li et al., MLSys 2020. With mu = 0 this is FedAvg."""

    mu: float = Field(1.0, ge=0, le=1e9, description="weight of the proximal term")

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        return grads.add_(local, alpha=self.mu).sub_(start, alpha=self.mu)
