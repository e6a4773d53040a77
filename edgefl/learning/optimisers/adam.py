"""Adaptive moment estimation."""

from collections.abc import Sequence
from typing import ClassVar

from edgefl.learning.optimisers import Optimiser, Step
from edgefl.learning.tensors import Tensor, in_double


class Adam(Optimiser):
    """Step along the first moment divided by the root of the second moment, both bias-corrected.

    Kingma and Ba, ICLR 2015. beta1 is `learning.local.momentum`: m = momentum m + (1 - momentum) g and
    v = beta2 v + (1 - beta2) g^2; w -= lr m^ / (sqrt(v^) + epsilon), with m^ and v^ divided by 1 - beta^step. Weight
    decay is added to the gradient. Both moments and their bias correction restart each round, except with `state:
    kept`; the first step after a restart has size lr in every coordinate, for any gradient. Left out: AMSGrad.

    Choose a smaller `learning.local.lr` than for SGD.
    """

    vectors: ClassVar = 2

    beta2: ClassVar[float] = 0.999  # decay rate of the second moment; Kingma and Ba's default
    epsilon: ClassVar[float] = 1e-8  # keeps the divisor above zero; Kingma and Ba's default

    def step(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
        self._decay(local, grads, step)
        self._move(local, grads, state, step)

    def _decay(self, local: Tensor, grads: Tensor, step: Step) -> None:
        if step.weight_decay:
            grads.add_(local, alpha=step.weight_decay)

    def _move(self, local: Tensor, grads: Tensor, state: Sequence[Tensor], step: Step) -> None:
        import torch

        # the state stores the moments divided by 1 - beta1 and 1 - beta2, which saves passes over memory
        first, second = state
        beta1, beta2 = step.momentum, self.beta2
        torch.add(grads, first, alpha=beta1, out=first)
        torch.add(grads.square_(), second, alpha=beta2, out=second)
        if isinstance(step.number, int):
            mean = (1 - beta1) / (1 - beta1**step.number)
            root = ((1 - beta2**step.number) / (1 - beta2)) ** 0.5
            below = torch.sqrt(second, out=grads).add_(self.epsilon * root)
            local.addcdiv_(first, below, value=-step.lr * mean * root)
            return
        number = in_double(step.number)  # step numbers differ between devices
        means = ((1 - beta1) / (1 - beta1**number)).to(local)
        roots = ((1 - beta2**number) / (1 - beta2)).sqrt().to(local)
        below = torch.sqrt(second, out=grads).div_(roots).add_(self.epsilon)
        local.addcdiv_(first * means, below, value=-step.lr)
