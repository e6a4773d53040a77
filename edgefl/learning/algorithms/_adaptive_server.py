"""The adaptive server optimiser of FedAdagrad, FedAdam and FedYogi."""

from abc import abstractmethod
from typing import ClassVar, Literal

from pydantic import Field

from edgefl.learning.algorithms import Members, ServerState, Updates
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class AdaptiveServer(FedAvg):
    """Base class of adaptive optimisers at the server, which use the mean change Delta as the gradient.

    m+ = beta1 m + (1 - beta1) Delta, w+ = w + server_lr m+ / (sqrt(v+) + tau), with v+ by each algorithm's rule, and
    m = 0 and v = tau^2 before the first round. Reddi et al., Adaptive Federated Optimization, ICLR 2021, algorithm 2
    (no bias correction). Reddi et al.'s Delta weights devices equally (`weighting: equal`); the default weights
    devices by data size, as do all algorithms here, so that algorithms differ only in their update rules.

    m and v are reset at the start of each session, because they follow the previous session's path, on which the
    opening model need not lie. With beta1 = 0 and server_lr = 2 tau the algorithm approaches FedAvg as tau grows,
    since sqrt(v) tends to tau.
    """

    uses: ClassVar[str] = "mean"

    server_lr: float = Field(
        0.01, gt=0, le=1e9, description="eta: the server's step size; tune it together with tau"
    )
    beta1: ClassVar[float] = 0.9  # decay rate of the first moment; Reddi et al.
    tau: float = Field(1e-3, ge=1e-12, le=1e9, description="changes far below tau are not normalised")
    weighting: Literal["data", "equal"] = Field(
        "data",
        description="weights of the mean of the devices' changes: by data size (J 5), or equal (Reddi et al., FLASH)",
    )

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {"mean": start.new_zeros(start.shape), "square": start.new_full(start.shape, self.tau**2)}

    def weighs_equally(self) -> bool:
        return self.weighting == "equal"

    @abstractmethod
    def next_square(self, square: Tensor, change_squared: Tensor) -> Tensor:
        """Return the next v, v+ [M], from v [M] and the squared mean change Delta^2 [M]."""

    def change(self, updates: Updates) -> Tensor:
        """Return the mean change Delta [M] of the devices' models, weighted by `weighting`."""
        return updates.mean_change() if self.weighting == "data" else (updates.rows - updates.start).mean(0)

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        change = self.change(updates)
        mean = self.beta1 * state["mean"] + (1 - self.beta1) * change
        square = self.next_square(state["square"], change.square())
        below, further = self.denominator(square, change, state)
        step = self.rate(updates) * mean / below
        return model + step, {"mean": mean, "square": square, **further}

    def denominator(self, square: Tensor, change: Tensor, state: ServerState) -> tuple[Tensor, ServerState]:
        """Return the divisor [M] of m+, computed from v+ and Delta, and other entries of the next state."""
        return square.sqrt() + self.tau, {}

    def rate(self, updates: Updates) -> float:
        """Return the server's step size eta for these updates."""
        return self.server_lr
