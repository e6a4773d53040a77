"""Dynamic regularisation."""

from collections.abc import Mapping
from typing import ClassVar

from pydantic import Field
from torch import Tensor

from edgefl.learning.algorithms import Members, ServerState, Trained, Updates
from edgefl.learning.algorithms.fedavg import FedAvg


class FedDyn(FedAvg):
    """Local loss minus <h_k, w> plus alpha/2 |w - w_start|^2: its optima agree with the global one.

    Acar et al., FedDyn, ICLR 2021: h_k+ = h_k - alpha (w_k - w), h+ = h - alpha times the sum of these
    changes over all devices of the session, w+ = mean of the w_k minus h+ / alpha. All means are by data
    size; for devices of equal size this is the paper's.

    h_k follows its device, whatever the session or cell. The paper has one set of devices, for which h is
    the mean of the h_k; a session begins with h = 0, and the h_k of the devices that are there are shifted
    to mean 0: an h left from other devices would throw the model off by h / alpha.

    alpha = 0, where the paper divides by zero, is FedAvg.
    """

    device_vectors: ClassVar = ("gradient",)

    alpha: float = Field(0.01, ge=0, le=1e9, description="weight of the regularisation")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        members.shift("gradient", -members.mean("gradient"))
        return {"gradient": start.new_zeros(start.shape)}

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Tensor:
        return grads.sub_(own["gradient"]).add_(local, alpha=self.alpha).sub_(start, alpha=self.alpha)

    def keep(
        self, trained: Trained, sent: Tensor, state: ServerState, own: Mapping[str, Tensor]
    ) -> Mapping[str, Tensor]:
        return {"gradient": own["gradient"].sub_(trained.local - trained.start, alpha=self.alpha)}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        if not self.alpha:
            return super().aggregate(model, updates, state)
        gradient = state["gradient"] - self.alpha * updates.coverage * updates.mean_change()
        return updates.mean() - gradient / self.alpha, {"gradient": gradient}
