"""Federated averaging."""

from torch import Tensor

from edgefl.learning.algorithms import Algorithm, State, Updates


class FedAvg(Algorithm):
    """Plain local SGD; the server averages by data size (J 5). McMahan et al., AISTATS 2017."""

    def aggregate(self, model: Tensor, updates: Updates, state: State) -> tuple[Tensor, State]:
        return updates.mean(), state
