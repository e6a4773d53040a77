"""Normalised averaging."""

from typing import ClassVar

from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.tensors import Tensor


class FedNova(Algorithm):
    """Each device's change is divided by the steps it took, so that many steps do not weigh more.

    Wang et al., FedNova, NeurIPS 2020: w+ = w + tau_eff sum_k p_k (w_k - w) / a_k with
    tau_eff = sum_k p_k a_k; a_k (`travel`), the sum of the steps' weights in the change, is the number of steps, and
    more with local momentum. Other steps than SGD's have no such a_k, and are refused. Left out: its server
    momentum, and its a_k for proximal local losses.

    Equal a_k is FedAvg: with `learning.local.steps` all devices do the same, with `learning.local.epochs` a device
    with more data does more.
    """

    one_round: ClassVar = True

    def needs_sgd(self) -> bool:
        return True

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        effective = updates.shares @ updates.travel
        weights = effective * updates.shares / updates.travel
        start = updates.start
        started = weights.sum() * start if start.dim() == 1 else weights @ start
        return model + weights @ updates.rows - started, state
