"""Train several global models; each device trains the model that suits its data best."""

from abc import abstractmethod
from typing import ClassVar

from edgefl.learning.algorithms import Algorithm, Notes, Received, Receivers, ServerState, Updates
from edgefl.learning.tensors import Tensor

# columns of devices.csv
CLUSTER, LOWEST_LOSS = "cluster", "lowest_loss"


class Clustered(Algorithm):
    """Base class of algorithms with several global models, the rows of `models` [C, M] in the server's state.

    Each device receives all models, chooses the model with the lowest mean loss on the device's training data, and
    trains this model; each model becomes the mean of its devices' uploads, weighted by data size. Each device is
    tested with the model that it would choose. The global model, from which opening models are made, is the mean of
    all uploads, as in FedAvg; no device uses it. If a warm start opens a session with a model other than the last
    global model, all models are shifted by the difference.

    Batch statistics, which are not parameters, are averaged over all devices, regardless of the model that each
    device chose.
    """

    chooses_model: ClassVar = True
    one_round: ClassVar = True
    as_sent: ClassVar = True

    @abstractmethod
    def choose(self, losses: Tensor, state: ServerState, devices: Receivers) -> tuple[Tensor, Notes]:
        """Return the index [K] of the model that each device trains, chosen by its losses [K, C], and extra notes."""

    def choices(self, state: ServerState) -> Tensor:
        """Return the models [C', M] that devices choose from, the first C' models in the server's state."""
        return state["models"]

    def expected_down(self, state: ServerState) -> int:
        return len(self.choices(state)) if state else self.vectors_down

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        import torch

        choices = self.choices(state)
        losses = devices.losses(choices)
        cluster, further = self.choose(losses, state, devices)
        notes = {CLUSTER: cluster, LOWEST_LOSS: losses.min(1).values, **further}
        return Received(state["models"][cluster], notes, vectors=torch.full_like(cluster, len(choices)))

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        import torch

        models = state["models"].clone()
        cluster = updates.notes[CLUSTER]
        for c in torch.unique(cluster).tolist():
            shares = updates.shares * (cluster == c)
            models[c] = shares @ updates.rows / shares.sum()
        mean = updates.mean()
        return mean, {**state, "models": models, "global": mean}

    def deployed(self, model: Tensor, state: ServerState, devices: Receivers) -> Tensor:
        choices = self.choices(state)
        return choices[devices.losses(choices).argmin(1)]


def shifted(start: Tensor, last: ServerState) -> dict[str, Tensor]:
    """Return the last session's state with all models shifted from its last global model to the opening model."""
    by = start - last["global"]
    # an opening model equal to the last global model changes nothing, whereas adding 0.0 might change bits
    models = last["models"] + by if by.any() else last["models"]
    return {**last, "models": models, "global": start}
