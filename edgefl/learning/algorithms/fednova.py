"""Normalised averaging."""

from typing import ClassVar

from edgefl.learning.algorithms import Algorithm, ServerState, Updates
from edgefl.learning.tensors import Tensor


class FedNova(Algorithm):
    """Divide each device's change by its number of steps, so that devices with many steps do not weigh more.

    Wang et al., FedNova, NeurIPS 2020: w+ = w + tau_eff sum_k p_k (w_k - w) / a_k with tau_eff = sum_k p_k a_k; a_k
    (`travel`) is the sum of the steps' weights in the change: the number of steps, or a larger number with local
    momentum. Only SGD has such an a_k; any other `learning.local.optimiser` is an error. Left out: the paper's server
    momentum, and the paper's a_k for proximal local losses.

    With equal a_k the algorithm is FedAvg: with `learning.local.steps` all devices take the same number of steps;
    with `learning.local.epochs`, devices with more data take more steps.
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
