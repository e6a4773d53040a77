"""Federated learning with gradients fed back by the server."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import (
    RECEIVED_GRADIENT,
    Algorithm,
    Members,
    Sent,
    ServerState,
    Trained,
    Updates,
    Vectors,
)
from edgefl.learning.tensors import Tensor

SLOPE = "slope"


class Fedl(Algorithm):
    """Minimise F_k(y) + <eta G - grad F_k(w), y> on each device, from the received model w.

    Dinh, Tran et al., FEDL, IEEE/ACM Trans. Networking 29(1), 2021. G estimates the gradient of the global loss at w:
    it is the mean, by data size, of the gradients that the participants of the last round sent with their local
    models, each computed at its own local model. Except for the local steps, gradients are over all samples of a
    device; they are computed without dropout, and with fixed batch statistics. Two vectors are sent in each
    direction, which `learning.cost.payload` counts; `learning.cost.booked: all` counts the passes for gradients.

    A session's first round has no G, and therefore takes plain SGD steps, as in the authors' code. There, a
    round has `local_epochs` passes over mini-batches (20 in the published runs), and eta is 0.2 for batches of 20 and
    40, and 0.2 to 4 for full batches. With mini-batches the correction is not 0 at the optimum.

    If each device minimised exactly, w would move by -eta G / a_k for a quadratic loss of curvature a_k, so that the
    fixed point is the optimum of the global loss, no matter how different the devices are. With eta = 1 and a single
    device this is FedAvg, since G is then grad F_k(w).
    """

    whole_gradients: ClassVar = True
    vectors_down: ClassVar = 2
    vectors_up: ClassVar = 2
    one_round: ClassVar = True

    eta: float = Field(0.2, ge=0, le=1e9, description="weight of the global gradient in the local loss")

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        return {SLOPE: start.new_zeros(start.shape), "known": start.new_zeros(())}

    def correct(
        self, grads: Tensor, local: Tensor, start: Tensor, state: ServerState, own: Vectors
    ) -> Tensor:
        return grads.add_(state["known"] * (self.eta * state[SLOPE] - own[RECEIVED_GRADIENT]))

    def upload(self, trained: Trained, state: ServerState, own: Vectors) -> Sent:
        assert trained.gradients is not None
        return Sent(trained.local, {SLOPE: trained.gradients})

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        slope = updates.shares @ updates.notes[SLOPE]
        return updates.mean(), {SLOPE: slope, "known": state["known"].new_ones(())}
