"""Several global models; a device whose loss jumps starts a new one."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Notes, Receivers, ServerState, Updates
from edgefl.learning.algorithms._clustered import CLUSTER, LOWEST_LOSS, Clustered, shifted
from edgefl.learning.tensors import Tensor


class FedDrift(Clustered):
    """Devices train the model with the lowest loss; where even that is worse than last time by delta, a new one.

    FedDrift-Eager, Jothimurugesan et al., Federated Learning under Distributed Concept Drift, AISTATS 2023. A device
    remembers the lowest of its losses over all models when it last took part. If it is now higher by more than
    delta, the device has met a new concept. All devices that do so in a round train one new model, which begins
    as the first session's opening model did; so do those that follow within the next `window` rounds: in
    the paper all devices take part in each round, and drifts are looked for once per time step of many rounds,
    so that one drift makes one model. With all `models` begun, they train the best that there is. The number of
    models begun is at most `models`; models are never merged (that is FedDrift, not Eager).

    A device receives all models begun, which `learning.cost.payload: exchanged` counts, and sends one; the first
    opening model it is taken to know. Which one it trains, and its lowest loss, are columns of
    devices.csv. Models go on from session to session. What a device remembers goes with it to the next cell, whose
    models it may then take for a new concept: a loss does not tell whether the data or the models have changed.

    The rise of 1.0 is ours: a loss has no natural scale, and it wants to be set for each task. Left out: the test of
    the authors' code, which asks whether the highest accuracy falls.

    Where no loss jumps, or with models = 1, it is FedAvg.
    """

    remembers: ClassVar = (LOWEST_LOSS,)

    delta: float = Field(
        1.0,
        gt=0,
        le=1e9,
        description="rise of the lowest loss that tells a new concept",
    )
    models: int = Field(5, ge=1, le=100, description="most models that there can be")
    window: ClassVar[int] = 20  # rounds in which devices that meet a new concept train the same new model

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
            # round in which the newest model was begun
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
