"""Stochastic controlled averaging."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Algorithm, Members, ServerState, Trained, Updates, Vectors
from edgefl.learning.tensors import Tensor


class Scaffold(Algorithm):
    """Step along g - c_k + c, so that devices do not drift to their own optima.

    Karimireddy et al., SCAFFOLD, ICML 2020, option II: after a round from x to y_k,
    c_k+ = c_k - c + (x - y_k) / (a_k lr), and c moves by the mean change of the c_k over all devices of the session.
    a_k is the number of local steps, or with momentum, the total weight of these steps in x - y_k. (With the number
    of steps instead of this weight, c_k would overshoot: with 5 steps of momentum 0.9, its error grows 1.6-fold each
    round.) All means are weighted by data size, as is the mean of the models, so that c is the gradient of the same
    objective; if all devices have the same amount of data, this is the paper's method.

    c_k stays with its device through sessions and cells, as long as the device has the same data. A session begins
    with c = mean of the c_k of the devices present; c is this mean again when a device joins, with c_k = 0 for a new
    device: an outdated mean would bias all steps until the session's end. (In the paper, the set of devices never
    changes.) A device that leaves still counts with its last c_k, like a device that is not selected; if it comes
    back from another cell's session, it joins again. c and the change of c_k are sent with the model, which doubles
    the payload if `learning.cost.payload` counts them.

    c_k is a mean gradient only if a change is lr times a sum of gradients: `learning.local.optimiser` must be SGD.
    With `learning.local.clip_norm` gradients are clipped; with `weight_decay` they include the decay.

    In a round with learning rate 0, c and the c_k do not change, since the devices' changes contain no gradients.

    With server_lr = 1 and a single device this is FedAvg, since c_1 = c.
    """

    device_vectors: ClassVar[tuple[str, ...]] = ("control",)
    vectors_down: ClassVar = 2
    vectors_up: ClassVar = 2
    one_round: ClassVar = True

    server_lr: float = Field(1.0, gt=0, le=1e9, description="eta_g: the server's step size along the change")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {"control": members.mean("control")}

    def join(self, state: ServerState, members: Members, newcomers: Members) -> ServerState:
        return {"control": members.mean("control")}

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        return grads.sub_(own["control"]).add_(state["control"])

    def needs_sgd(self) -> bool:
        return True

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        if trained.at_rest:
            return {"control": own["control"]}
        change = (trained.start - trained.local).div_((trained.travel * trained.lr).unsqueeze(1))
        return {"control": own["control"].add_(change).sub_(state["control"])}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        if updates.at_rest:
            return model + self.server_lr * updates.mean_change(), {"control": state["control"]}
        by_step = updates.shares / (updates.travel * updates.lr)
        mean_gradient = updates.moved(by_step)  # control variates are sent unencoded
        control = state["control"] + updates.coverage * (mean_gradient - state["control"])
        return model + self.server_lr * updates.mean_change(), {"control": control}
