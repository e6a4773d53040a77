"""Adam with decoupled weight decay."""

from edgefl.learning.optimisers import Step
from edgefl.learning.optimisers.adam import Adam
from edgefl.learning.tensors import Tensor


class AdamW(Adam):
    """Adam whose weight decay shrinks the model by itself: w -= lr weight_decay w, beside Adam's step.

    Loshchilov and Hutter, ICLR 2019, with the decay times lr as in PyTorch. `learning.local.weight_decay` 0, the
    default, is Adam.
    """

    def _decay(self, local: Tensor, grads: Tensor, step: Step) -> None:
        if step.weight_decay:
            local.mul_(1 - step.lr * step.weight_decay)
