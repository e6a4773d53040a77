"""AMSGrad at a server whose updates are stale, with smaller steps where they are very stale."""

from typing import ClassVar

from edgefl.learning.algorithms import Members, ServerState, Updates
from edgefl.learning.algorithms.fedadam import FedAdam
from edgefl.learning.tensors import Tensor


class Fadas(FedAdam):
    """The server steps by AMSGrad along the mean change Delta of a buffer, less far where an update is very stale.

    m+ = beta1 m + (1 - beta1) Delta, v+ = beta2 v + (1 - beta2) Delta^2, u+ = max(u, v+),
    w+ = w + eta m+ / (sqrt(u+) + tau), and eta is server_lr, or where the largest staleness among the updates is
    above `patience`, at most 1 / that staleness. Wang, Wang, Lu and Chen, FADAS, ICML 2024 (arXiv 2407.18365);
    their updates weigh alike whatever their staleness, `rounds.server: {name: fedbuff, staleness: constant}`. Their v
    begins at 0, here as for all adaptive servers v = u = tau^2; state restarts with each session.

    Rounds that do not overlap have no staleness: then only the maximum differs from `fedadam`.
    """

    uses: ClassVar[str] = "updates"

    patience: ClassVar[int | None] = 1  # tau_c, largest staleness at full step; None: the paper's plain FADAS

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        state = super().init_state(start, last, members)
        return {**state, "largest": state["square"]}

    def rate(self, updates: Updates) -> float:
        within = self.patience is None or updates.staleness <= self.patience
        return self.server_lr if within else min(self.server_lr, 1 / updates.staleness)

    def denominator(self, square: Tensor, change: Tensor, state: ServerState) -> tuple[Tensor, ServerState]:
        largest = state["largest"].maximum(square)
        return largest.sqrt() + self.tau, {"largest": largest}
