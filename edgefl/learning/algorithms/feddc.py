"""Local drift decoupling and correction."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Received, Receivers, ServerState, Trained, Updates, Vectors
from edgefl.learning.algorithms.scaffold import Scaffold
from edgefl.learning.tensors import Tensor


class FedDc(Scaffold):
    """Keep each device's drift h_k, and pull its local model w_k towards w - h_k in the local loss.

    Gao et al., FedDC, CVPR 2022: local loss plus alpha/2 |w_k + h_k - w|^2 and the gradient correction
    <c - c_k, w_k>; h_k+ = h_k + w_k - w, and w+ = mean of the w_k plus h, the mean of the h_k over all devices of
    the session. Two points follow the authors' public code: c and c_k are computed as in SCAFFOLD (the paper uses the
    last round's mean steps instead), and h is a mean over all devices even if only some take part. (The mean over the
    round's participants, another reading of the paper's sum, would disturb the model by the participants' h_k, which
    are of size gradient / alpha.) All means are weighted by data size; if all devices have the same amount of data,
    this is the paper's method. The authors' code divides alpha and c by a device's weight instead, uses the plain
    mean of the h_k, and has weight decay 1e-3, which is `learning.local.weight_decay: 0.001` here. In the
    update of h_k, w_k stands for the model that the server decodes after a codec or clipping.

    h_k and c_k stay with their device through sessions and cells. A session begins with h = 0, and the devices' h_k
    are shifted to mean 0, as in FedDyn, because an h left over from other devices would distort the model. c begins
    as the mean of the c_k, as in SCAFFOLD. A device that joins begins with h_k = 0. The shift is sent with the model
    until an update of the device has arrived; `learning.cost.payload: exchanged` counts the shift.

    At alpha = 0 nothing would bound the h_k, so they are omitted, and the algorithm is SCAFFOLD.
    """

    device_vectors: ClassVar = ("control", "drift")
    as_sent: ClassVar = True
    vectors_at_start: ClassVar = 1

    alpha: float = Field(0.1, ge=0, le=1e9, description="weight of the pull term; 0.01 to 0.5 in FLASH")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        mean = members.mean("drift")
        members.shift("drift", -mean)
        begun = super().init_state(start, last, members)
        return {**begun, "drift": start.new_zeros(start.shape), "shifted": mean.any()}

    def join(self, state: ServerState, members: Members, newcomers: Members) -> ServerState:
        newcomers.forget("drift")
        return {**state, **super().join(state, members, newcomers), "drift": members.mean("drift")}

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        return Received(
            model,
            vectors=self.vectors_down + self.vectors_at_start * (devices.starting & state["shifted"]).long(),
        )

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        grads = super().correct(grads, local, start, state, own)
        pull = (local - start).add_(own["drift"])
        return grads.add_(pull, alpha=self.alpha)

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        drift = own["drift"].add_(sent - trained.start) if self.alpha else own["drift"]
        return {**super().keep(trained, sent, state, own), "drift": drift}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        mean, after = super().aggregate(model, updates, state)
        drift = state["drift"] + updates.coverage * updates.mean_change() if self.alpha else state["drift"]
        return mean + drift, {**state, **after, "drift": drift}
