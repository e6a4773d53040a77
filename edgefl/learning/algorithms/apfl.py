"""Adaptive personalised federated learning."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import ServerState, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class Apfl(FedAvg):
    """Mix the global model with each device's own model v_k, and test the device with the mixture.

    Deng, Kamani and Mahdavi, Adaptive Personalized Federated Learning, 2020: w_k is trained as in FedAvg. On the same
    mini-batches, v_k is trained to lower the loss of the mixture alpha v_k + (1 - alpha) w_k; the gradient with
    respect to v_k is alpha times the gradient at the mixture. v_k stays with its device, and starts as the
    first model that the device receives. Devices exchange the same vectors as in FedAvg, so the global model is the
    same as in FedAvg; the column `accuracy_personal` shows the gain of personal models.

    Left out: learning alpha on each device, which is an option in the paper; FLASH also uses a fixed alpha.

    With alpha = 0 the algorithm is FedAvg.
    """

    trains_personal: ClassVar = True

    alpha: float = Field(
        0.25, ge=0, le=1, description="share of a device's own model in the mixture; 0.25 or 0.5 in FLASH"
    )

    def personal_point(self, personal: Tensor, local: Tensor) -> Tensor:
        return self.alpha * personal + (1 - self.alpha) * local

    def correct_personal(
        self, grads: Tensor, personal: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        return grads.mul_(self.alpha)

    def personal(self, model: Tensor, personal: Tensor, own: Vectors) -> Tensor:
        return self.alpha * personal + (1 - self.alpha) * model
