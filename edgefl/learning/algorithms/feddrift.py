"""FedDrift trains several global models, and starts a new model when a device's loss jumps."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Notes, Receivers, ServerState, Updates
from edgefl.learning.algorithms._clustered import CLUSTER, LOWEST_LOSS, Clustered, shifted
from edgefl.learning.tensors import Tensor


class FedDrift(Clustered):
    """Train the model with the lowest loss, or a new model if even the lowest loss has risen by more than delta.

    FedDrift-Eager, Jothimurugesan et al., Federated Learning under Distributed Concept Drift, AISTATS 2023. A device
    remembers its lowest loss over all models from its last participation. If its lowest loss has risen by more than
    delta, the device has a new concept. All such devices of this round and the following `window` - 1 rounds train
    the same new model, which starts as the first session's opening model. In the paper all devices take part in each
    round, and drift is detected once per time step of many rounds, so that one drift leads to one new model. Once
    there are `models` models, a device with a new concept trains the model with the lowest loss. Models are never
    merged (FedDrift merges them, FedDrift-Eager does not).

    A device receives all models started so far, which `learning.cost.payload: exchanged` counts, and sends one model;
    each device is assumed to know the first opening model. devices.csv reports the model that each device trains, and
    the lowest loss. Models continue from session to session. A device takes its remembered loss to the next cell, and
    may mistake that cell's models for a new concept, because a loss does not show whether data or models changed.

    The default delta of 1.0 is our choice; losses have no natural scale, so set it for each task. Left out: a second
    test in the authors' code, for a drop in the highest accuracy.

    If no loss jumps, or with models = 1, the algorithm is FedAvg.
    """

    remembers: ClassVar = (LOWEST_LOSS,)

    delta: float = Field(
        1.0,
        gt=0,
        le=1e9,
        description="rise of the lowest loss that signals a new concept",
    )
    models: int = Field(5, ge=1, le=100, description="maximum number of models")
    window: ClassVar[int] = 20  # number of rounds in which all new concepts lead to the same new model

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        import torch

        if last:
            begun = int(last["begun"])
            moved = shifted(start, {**last, "models": last["models"][:begun]})
            return {**moved, "models": torch.cat([moved["models"], last["models"][begun:]])}
        return {
            "models": start.repeat(self.models, 1),
            "global": start,
            "begun": torch.ones(()),
            "round": torch.zeros(()),
            # round in which the newest model was started
            "newest": torch.full((), -float(self.window)),
        }

    def choices(self, state: ServerState) -> Tensor:
        return state["models"][: int(state["begun"])]

    def choose(self, losses: Tensor, state: ServerState, devices: Receivers) -> tuple[Tensor, Notes]:
        import torch

        lowest, best = losses.min(1)
        jumped = lowest > devices.remembered(LOWEST_LOSS, float("inf")) + self.delta
        begun = int(state["begun"])
        if float(state["round"] - state["newest"]) < self.window:
            best = torch.where(jumped, begun - 1, best)
        elif begun < self.models:
            best = torch.where(jumped, begun, best)
        return best, {}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        import torch

        after, state = super().aggregate(model, updates, state)
        begun = torch.maximum(state["begun"], updates.notes[CLUSTER].max().to(state["begun"]) + 1)
        newest = torch.where(begun > state["begun"], state["round"], state["newest"])
        return after, {**state, "begun": begun, "round": state["round"] + 1, "newest": newest}
