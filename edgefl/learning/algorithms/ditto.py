"""Ditto trains a personal model close to the global model on each device."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import ServerState, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class Ditto(FedAvg):
    """Train a personal model v_k on each device, pulled to the received model w, and test the device with v_k.

    Li et al., Ditto, ICML 2021: lambda/2 |v_k - w|^2 is added to the loss of v_k. v_k takes as many steps as the
    local model, on the same mini-batches; it stays with its device, and starts as the first model received. Transfers
    and the global model are the same as in FedAvg; `accuracy_personal` shows the gain of personal models.

    With lambda = 0 each device trains alone, as in `local_only`. The larger lambda, the closer v_k stays to w;
    without momentum, steps are stable up to lr_factor x learning.local.lr x lambda = 2. lr_factor multiplies the
    gradients (not `learning.local.weight_decay`), and so SGD's learning rate; for other optimisers it must be 1.
    """

    trains_personal: ClassVar = True

    mu: float = Field(0.1, ge=0, le=1e9, description="weight of the proximal term, the paper's lambda")
    lr_factor: float = Field(
        1.0,
        gt=0,
        le=1e9,
        description="learning rate of the personal models, as a multiple of the local models' rate",
    )

    def needs_sgd(self) -> bool:
        return self.lr_factor != 1.0

    def correct_personal(
        self, grads: Tensor, personal: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        grads.add_(personal, alpha=self.mu).sub_(start, alpha=self.mu)
        return grads if self.lr_factor == 1.0 else grads.mul_(self.lr_factor)
