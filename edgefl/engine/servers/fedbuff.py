"""Make a new model each time a fixed number of updates has arrived, from any devices."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from edgefl.contract import Staleness
from edgefl.engine.servers import ServerState, WeighingServer


class FedBuff(WeighingServer):
    """Make a new model from every `buffer` updates; when a device finishes, another is dispatched.

    Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation, AISTATS 2022, algorithm 1:
    w+ = w + server_lr / K sum_k s(tau_k) Delta_k, where Delta_k is the change from the model that device k received,
    s(tau) = (1 + tau)^-1/2, and K the buffer's size. Here the devices' shares of data p_k replace 1/K, as everywhere
    (J 5); they equal 1/K if all devices hold the same amount. FLGo's FedBuff corresponds to `staleness: constant`,
    FedScale's to `divisor: weights` with `base: current`, and Plato's to `staleness: constant` with `base: current`.

    A device whose update waits in the buffer is not dispatched. If the buffer cannot fill, because no device is
    working or idle, the server aggregates the updates in it. With buffer and concurrency equal to the number of
    devices, and no device lost, this is `synchronous`.
    """

    buffer: int = Field(10, ge=1, le=1_000_000, description="K: number of updates from which a model is made")
    divisor: Literal["buffer", "weights", "none"] = Field(
        "buffer",
        description="divisor of the weighted sum of changes. buffer: the buffer size, as in the paper; weights: the"
        " sum of the weights; none: no division",
    )
    base: Literal["received", "current"] = Field(
        "received",
        description="model from which a change is measured. received: the model that the device received, as in the"
        " paper; current: the server's current model",
    )
    server_lr: float = Field(1.0, gt=0, le=1e6, description="eta_g: step size of the server")

    @property
    def learning(self) -> Staleness:
        return replace(super().learning, divisor=self.divisor, base=self.base, scale=self.server_lr)

    def ready(self, state: ServerState) -> int:
        return self.buffer if state.arrived >= self.buffer else 0
