"""FLASH combines early stopping with a server that takes larger steps when the devices' updates grow."""

from typing import ClassVar

from edgefl.learning.algorithms import Members, ServerState
from edgefl.learning.algorithms.fedadam import FedAdam
from edgefl.learning.tensors import Tensor


class Flash(FedAdam):
    """Take an Adam step with its denominator reduced by the disparity d of Delta^2 and v; stop local training early.

    Panchal et al., FLASH, ICML 2023, algorithm 1. Server, per coordinate, from the mean change Delta:
    m+ = beta1 m + (1 - beta1) Delta, v+ = beta2 v + (1 - beta2) Delta^2,
    beta3 = |v| / (|Delta^2 - v+| + |v|), d+ = beta3 d + (1 - beta3) (Delta^2 - v+),
    w+ = w + server_lr m+ / max(sqrt(v+) - d+ + tau, tau).
    Line 21 is printed without the minus sign that equation 92 of the proofs has. The proofs also assume sqrt(v) - d
    to be positive, which nothing in the algorithm ensures: d grows with the square of the changes, sqrt(v) only in
    proportion to them, so d exceeds sqrt(v) if changes are large. The denominator is therefore at least tau, its
    value until the model first moves. Where v and Delta are 0, beta3 would be 0/0; d does not change there.

    The paper does not give initial values; here m = d = 0 and v = tau^2, as in the paper's baselines (Reddi et al.,
    ICLR 2021). Each session resets m, d and v. The paper's Delta is the plain mean over devices (line 16; `weighting:
    equal`).

    Devices hold out the share `validation` of their samples and stop after epoch e if the mean loss on the held-out
    samples fell by less than gamma / e, and after `learning.local.epochs` at the latest.
    `learning.local.early_stopping`, which works with all algorithms, is this rule with a different gamma. The paper
    sums the loss over samples; the mean, used here, does not depend on the number of samples.

    With disparity = 0, d is omitted, and the server is FedAdam's.
    """

    uses: ClassVar[str] = "updates"

    disparity: ClassVar[float] = 1.0  # weight of d, 1 in FLASH
    stops_below: ClassVar[float] = 0.04  # gamma, 0.03 to 0.05 in the paper
    validation: ClassVar[float] = 0.3  # share of samples held out for early stopping, a 7:3 split

    def keeps_apart(self) -> float:
        return self.validation

    def stop(self, epoch: Tensor, loss: Tensor, before: Tensor) -> Tensor:
        return before - loss < self.stops_below / epoch

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {**super().init_state(start, last, members), "disparity": start.new_zeros(start.shape)}

    def denominator(self, square: Tensor, change: Tensor, state: ServerState) -> tuple[Tensor, ServerState]:
        import torch

        before, gap = state["square"], change.square() - square
        moved = gap.abs() + before
        beta3 = torch.where(moved > 0, before / moved, 1.0)
        disparity = beta3 * state["disparity"] + (1 - beta3) * gap
        room = (square.sqrt() - self.disparity * disparity).clamp_min(0.0)
        return room + self.tau, {"disparity": disparity}
