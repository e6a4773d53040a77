"""Step against the sign of the momentum."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from pydantic import Field
from torch import Tensor

from edgefl.learning.optimisers import Optimiser, Step


class Lion(Optimiser):
    """Move every weight by lr, against the sign of a weighted mean of past gradients and the current one.

    Lion (Chen et al., Symbolic Discovery of Optimization Algorithms, NeurIPS 2023): beta1 is
    `learning.local.momentum`, and weight decay is decoupled, as in adamw. Choose a learning rate three to ten times
    smaller than for Adam.
    """

    vectors: ClassVar = 1

    beta2: float = Field(0.99, ge=0, lt=1, description="decay rate of the mean of past gradients")

    def step(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
        (mean,) = state
        direction = torch.lerp(grads, mean, step.momentum).sign_()
        local.mul_(1 - step.lr * step.weight_decay).sub_(direction, alpha=step.lr)
        mean.lerp_(grads, 1 - self.beta2)
