"""Make a new model from each update as it arrives."""

from dataclasses import replace

from pydantic import Field

from edgefl.contract import Staleness
from edgefl.engine.servers import ServerState, WeighingServer


class FedAsync(WeighingServer):
    """Make a new model from each update as it arrives: w+ = (1 - a) w + a w_k with a = alpha x s(tau).

    Xie, Koyejo and Gupta, Asynchronous Federated Optimization, 2019 (arXiv 1903.03934), algorithm 1. In the paper,
    devices also have a proximal term, as with `learning.algorithm: {name: fedprox, mu: 0.005}`.

    This server is `fedbuff` with buffer 1, base current and server_lr `alpha`.
    """

    alpha: float = Field(0.6, gt=0, le=1, description="share of a fresh update in the new model")

    @property
    def learning(self) -> Staleness:
        return replace(super().learning, base="current", scale=self.alpha)

    def ready(self, state: ServerState) -> int:
        return min(1, state.arrived)
