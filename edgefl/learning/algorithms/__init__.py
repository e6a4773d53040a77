"""Federated learning algorithms: one readable file each, state in and state out."""

from abc import abstractmethod
from typing import Any

from torch import Tensor

from edgefl.component import Component


class Algorithm(Component):
    """Base of all algorithms. `state` is whatever the algorithm keeps between rounds."""

    @abstractmethod
    def init_state(self, start: Tensor) -> Any:
        """State before the first round of a session; start [M] is the session's opening model."""

    @abstractmethod
    def correct(self, grads: Tensor, local: Tensor, start: Tensor, state: Any) -> Tensor:
        """Gradients as used by a local step.

        Args:
            grads: [k, M] plain gradients; may be changed in place.
            local: [k, M] local models.
            start: [M] the global model with which the round began.

        Returns:
            [k, M].
        """

    @abstractmethod
    def aggregate(self, start: Tensor, rows: Tensor, weights: Tensor, state: Any) -> tuple[Tensor, Any]:
        """The next global model and state.

        Args:
            start: [M] the global model with which the round began.
            rows: [K, M] local models that arrived, in order of device id.
            weights: [K] shares of the data, sum 1.

        Returns:
            [M] and the state.
        """
