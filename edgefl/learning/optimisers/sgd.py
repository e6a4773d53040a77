"""Stochastic gradient descent."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from edgefl.learning.optimisers import Optimiser, Step
from edgefl.learning.tensors import Tensor


class Sgd(Optimiser):
    """Step with momentum: u = momentum u + g, w -= lr u, like PyTorch's SGD without dampening.

    Weight decay is added to the gradient, g + weight_decay w. With `learning.local.momentum` 0 this is plain SGD.
    """

    vectors: ClassVar = 1

    # Nesterov momentum, if a subclass sets it: a step along g + momentum u, as in PyTorch (Sutskever et al., 2013)
    nesterov: ClassVar[bool] = False

    def step(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
        import torch

        (velocity,) = state
        if step.weight_decay:
            grads.add_(local, alpha=step.weight_decay)
        torch.add(grads, velocity, alpha=step.momentum, out=velocity)
        moves = grads.add_(velocity, alpha=step.momentum) if self.nesterov else velocity
        local.sub_(moves, alpha=step.lr)

    def weights(self, steps: int, momentum: float) -> np.ndarray:
        followed = np.arange(1, steps + 1) + self.nesterov  # number of terms of the sum 1 + rho + rho^2 + ...
        weights: np.ndarray = (1 - momentum**followed) / (1 - momentum)
        return weights
