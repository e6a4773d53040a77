"""Federated averaging."""

from torch import Tensor

from edgefl.learning.algorithms import Algorithm, ServerState, Updates


class FedAvg(Algorithm):
    """Plain local SGD; the server averages by data size (J 5). McMahan et al., AISTATS 2017."""

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return updates.mean(), state
