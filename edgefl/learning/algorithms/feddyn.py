"""Dynamic regularisation."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Received, Receivers, ServerState, Trained, Updates, Vectors
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.tensors import Tensor


class FedDyn(FedAvg):
    """Train on local loss minus <h_k, w> plus alpha/2 |w - w_start|^2, so that local and global optima agree.

    Acar et al., FedDyn, ICLR 2021: h_k+ = h_k - alpha (w_k - w), h+ = h - alpha times the sum of these
    changes over all devices of the session, w+ = mean of the w_k minus h+ / alpha. All means are weighted by data
    size; if all devices have the same amount of data, this is the paper's method. With a codec or clipping, w_k is
    what the server decodes, so that both ends sum the same changes.

    h_k stays with its device through sessions and cells, as long as the device has the same data. In the paper the
    set of devices is fixed, and h is the mean of their h_k. Here a session begins with h = 0, and the h_k of the
    devices present are shifted to mean 0, because an h left over from other devices would shift the model by h /
    alpha. A device that joins later, or comes back from another cell, begins with h_k = 0 for the same reason, and h
    becomes the mean of the h_k again; a device that leaves still counts with its last h_k. The shift is sent with the
    model until an update of the device has arrived; `learning.cost.payload: exchanged` counts the shift. A device
    that joins later needs no shift, because its h_k is 0.

    The model moves by -h / alpha, and h sums all mean changes of the session. If local training moves only a small
    part of the way to its optimum (alpha x lr x local steps far below 1; momentum 0.9 lengthens a step up to
    tenfold), the algorithm acts like server momentum without decay: the model overshoots in the first rounds, more
    with full participation, and swings back. The default is the authors' value for CIFAR-10 and synthetic data, with
    at least 50 local steps of rate 0.1; use a larger alpha for fewer or smaller steps. Measured with logistic
    regression on Fashion-MNIST, 40 devices in every round, and all labels changed between sessions: after the first
    round of sessions 2 and 3, 5 steps of rate 0.01 lead to accuracies of 0.79 and 0.80 with FedAvg, and of 0.32 and
    0.00 with FedDyn. With 20 steps of rate 0.05 the accuracies are 0.84 and 0.74 with FedAvg, 0.78 and 0.11 with
    FedDyn at alpha 0.01, and 0.77 and 0.73 at alpha 0.1.

    With alpha = 0, where the paper divides by zero, this is FedAvg.
    """

    # sessions and joins read the devices' own h_k, to which a server that adds noise to the mean adds none
    uses: ClassVar[str] = "updates"
    device_vectors: ClassVar = ("gradient",)
    as_sent: ClassVar = True
    vectors_at_start: ClassVar = 1
    one_round: ClassVar = True

    alpha: float = Field(
        0.01,
        ge=0,
        le=1e9,
        description="weight of the regularisation; the default is the authors' value. If it is far below 1 / (lr x "
        "local steps), the first rounds of a session overshoot, down to accuracy 0: use a larger weight",
    )

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        mean = members.mean("gradient")
        members.shift("gradient", -mean)
        return {"gradient": start.new_zeros(start.shape), "shifted": mean.any()}

    def join(self, state: ServerState, members: Members, newcomers: Members) -> ServerState:
        newcomers.forget("gradient")
        return {**state, "gradient": members.mean("gradient")}

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        return Received(
            model, vectors=1 + self.vectors_at_start * (devices.starting & state["shifted"]).long()
        )

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        return grads.sub_(own["gradient"]).add_(local, alpha=self.alpha).sub_(start, alpha=self.alpha)

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        return {"gradient": own["gradient"].sub_(sent - trained.start, alpha=self.alpha)}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        if not self.alpha:
            return super().aggregate(model, updates, state)
        gradient = state["gradient"] - self.alpha * updates.coverage * updates.mean_change()
        return updates.mean() - gradient / self.alpha, {**state, "gradient": gradient}
