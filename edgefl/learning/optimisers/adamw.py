"""Adam with decoupled weight decay."""

from edgefl.learning.optimisers import Step
from edgefl.learning.optimisers.adam import Adam
from edgefl.learning.tensors import Tensor


class AdamW(Adam):
    """Adam with decoupled weight decay: w -= lr weight_decay w in addition to Adam's step.

    Loshchilov and Hutter, ICLR 2019, with the decay multiplied by lr as in PyTorch. With
    `learning.local.weight_decay` 0, the default, this is Adam.
    """

    def _decay(self, local: Tensor, grads: Tensor, step: Step) -> None:
        if step.weight_decay:
            local.mul_(1 - step.lr * step.weight_decay)
