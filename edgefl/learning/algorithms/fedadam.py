"""Adam at the server."""

from typing import ClassVar

from edgefl.learning.algorithms._adaptive_server import AdaptiveServer
from edgefl.learning.tensors import Tensor


class FedAdam(AdaptiveServer):
    """Take an Adam step along the mean change Delta: v+ = beta2 v + (1 - beta2) Delta^2.

    m+ = beta1 m + (1 - beta1) Delta, w+ = w + server_lr m+ / (sqrt(v+) + tau), from m = 0 and v = tau^2.
    Reddi et al., Adaptive Federated Optimization, ICLR 2021, algorithm 2. Each session resets m and v.
    With server_lr = (1 + sqrt(beta2)) tau and beta1 = 0, a session's first round approaches FedAvg as tau grows.
    """

    beta2: ClassVar[float] = 0.99  # decay rate of the second moment; Reddi et al.

    def next_square(self, square: Tensor, change_squared: Tensor) -> Tensor:
        return self.beta2 * square + (1 - self.beta2) * change_squared
