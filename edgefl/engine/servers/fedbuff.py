"""A model of every few updates, whoever they are from."""

from dataclasses import replace
from typing import Literal

from pydantic import Field

from edgefl.contract import Staleness
from edgefl.engine.servers import ServerState, WeighingServer


class FedBuff(WeighingServer):
    """A model is made as soon as `buffer` updates wait, and whoever is done makes room for another device.

    Nguyen et al., Federated Learning with Buffered Asynchronous Aggregation, AISTATS 2022, algorithm 1:
    w+ = w + server_lr / K sum_k s(tau_k) Delta_k, Delta_k the change from the model that device k had received and
    s(tau) = (1 + tau)^-1/2, K the buffer. Here the data's shares p_k stand for 1/K, as everywhere (J 5); they are
    1/K where devices hold alike. docs/async.md says which parameters make it what other libraries call FedBuff.

    A device whose update waits in the buffer begins no other. A buffer that cannot fill, as nobody works and
    nobody is left to begin, is made a model as it is. With buffer and concurrency as many as there are devices, and
    none lost, this is `synchronous`.
    """

    buffer: int = Field(10, ge=1, le=1_000_000, description="K: updates that make a model")
    divisor: Literal["buffer", "weights", "none"] = Field(
        "buffer",
        description="of the weighted sum of changes: the buffer's size, as in the paper; the sum of the weights; or"
        " none",
    )
    base: Literal["received", "current"] = Field(
        "received",
        description="a change is measured from the model that the device received, as in the paper, or from the"
        " current one",
    )
    server_lr: float = Field(1.0, gt=0, le=1e6, description="eta_g: step of the server along the sum")

    @property
    def learning(self) -> Staleness:
        return replace(super().learning, divisor=self.divisor, base=self.base, scale=self.server_lr)

    def ready(self, state: ServerState) -> int:
        return self.buffer if state.arrived >= self.buffer else 0
