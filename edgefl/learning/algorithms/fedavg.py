"""Federated averaging."""

from typing import Any

from torch import Tensor

from edgefl.learning.algorithms import Algorithm


class FedAvg(Algorithm):
    """Plain local SGD; the server averages by data size (J 5). McMahan et al., AISTATS 2017."""

    def init_state(self, start: Tensor) -> Any:
        return None

    def correct(self, grads: Tensor, local: Tensor, start: Tensor, state: Any) -> Tensor:
        return grads

    def aggregate(self, start: Tensor, rows: Tensor, weights: Tensor, state: Any) -> tuple[Tensor, Any]:
        return weights @ rows, state
