"""Turn a gradient into a step: clip the gradient, correct it by the algorithm, and apply the optimiser."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from torch import Tensor

from edgefl.learning.optimisers import Optimiser, Step
from edgefl.learning.optimisers.sgd import Sgd

SHORTEST = 1e-6  # number added to a gradient's norm before the division, as in PyTorch's clip_grad_norm_


@dataclass(frozen=True)
class UpdateRule:
    """The rule by which all devices turn gradients into local steps; the default is plain SGD.

    momentum, optimiser, weight_decay, clip_norm: as in `learning.local`.
    """

    momentum: float = 0.0
    optimiser: Optimiser = field(default_factory=Sgd)
    weight_decay: float = 0.0
    clip_norm: float | None = None

    def clipped(self, grads: Tensor) -> Tensor:
        """Scale gradients [k, M] down, in place, to the maximum norm `clip_norm`; return the gradients."""
        if self.clip_norm is None:
            return grads
        norms = grads.square().sum(1).sqrt_().add_(SHORTEST)
        return grads.mul_((self.clip_norm / norms).clamp_(max=1.0).unsqueeze(1))

    def step(
        self, number: int | Tensor, lr: float, local: Tensor, grads: Tensor, state: Sequence[Tensor]
    ) -> None:
        """Update local models [k, M] in place; `number` is the step's number from 1, or [k, 1] one per device."""
        self.optimiser.step(local, grads, state, Step(number, lr, self.momentum, self.weight_decay))

    def travel(self, steps: np.ndarray) -> np.ndarray:
        """Return the sum a_k of the gradients' weights in each device's change [K]; NaN if no such weights exist."""
        weights = self.optimiser.weights(max(1, int(steps.max(initial=1))), self.momentum)
        if weights is None:
            return np.full(len(steps), np.nan)
        return np.concatenate([[0.0], np.cumsum(weights)])[steps]
