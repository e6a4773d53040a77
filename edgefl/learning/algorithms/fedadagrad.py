"""Adagrad at the server."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms._adaptive_server import AdaptiveServer
from edgefl.learning.tensors import Tensor


class FedAdagrad(AdaptiveServer):
    """Take an Adagrad step along the mean change Delta: v+ = v + Delta^2.

    m+ = beta1 m + (1 - beta1) Delta, w+ = w + server_lr m+ / (sqrt(v+) + tau), from m = 0 and v = tau^2.
    Reddi et al., Adaptive Federated Optimization, ICLR 2021, algorithm 2. Each session resets m and v.
    With server_lr = 2 tau and beta1 = 0 the algorithm approaches FedAvg as tau grows.
    """

    server_lr: float = Field(
        0.1, gt=0, le=1e9, description="eta: the server's step size; tune it together with tau"
    )
    beta1: ClassVar[float] = 0.0  # decay rate of the first moment; Reddi et al.

    def next_square(self, square: Tensor, change_squared: Tensor) -> Tensor:
        return square + change_squared
