"""AMSGrad at the server, with smaller steps for very stale updates."""

from typing import ClassVar

from edgefl.learning.algorithms import Members, ServerState, Updates
from edgefl.learning.algorithms.fedadam import FedAdam
from edgefl.learning.tensors import Tensor


class Fadas(FedAdam):
    """Take an AMSGrad step along the mean change Delta of buffered updates; limit it if an update is very stale.

    m+ = beta1 m + (1 - beta1) Delta, v+ = beta2 v + (1 - beta2) Delta^2, u+ = max(u, v+),
    w+ = w + eta m+ / (sqrt(u+) + tau). eta is server_lr; if the largest staleness among the updates exceeds
    tau_c = 1, eta is at most 1 / this staleness. Wang, Wang, Lu and Chen, FADAS, ICML 2024 (arXiv 2407.18365).
    In FADAS, all updates count equally, however stale: set `rounds.server: {name: fedbuff, staleness: constant}`. The
    paper's v starts at 0; here v = u = tau^2 at first, as with all adaptive servers. Each session resets the state.

    With synchronous rounds there is no staleness, and only the maximum u distinguishes `fadas` from `fedadam`.
    """

    uses: ClassVar[str] = "updates"

    patience: ClassVar[int | None] = (
        1  # tau_c, largest staleness with a full step; None: no limit, as in plain FADAS
    )

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        state = super().init_state(start, last, members)
        return {**state, "largest": state["square"]}

    def rate(self, updates: Updates) -> float:
        within = self.patience is None or updates.staleness <= self.patience
        return self.server_lr if within else min(self.server_lr, 1 / updates.staleness)

    def denominator(self, square: Tensor, change: Tensor, state: ServerState) -> tuple[Tensor, ServerState]:
        largest = state["largest"].maximum(square)
        return largest.sqrt() + self.tau, {"largest": largest}
