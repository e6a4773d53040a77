"""Each device trains alone, without any exchange of models."""

from typing import ClassVar

from edgefl.learning.algorithms import Algorithm, Received, Receivers, ServerState, Trained, Updates, Vectors
from edgefl.learning.tensors import Tensor


class LocalOnly(Algorithm):
    """Train a model with its own statistics on each device, and send no models.

    This is the baseline that any exchange of models must beat. A transfer has 0 bits (except for reports that a
    session policy requests) and takes no time. A device begins with the opening model of its first session, and keeps
    its model in all sessions and cells. A device is tested with its own model, or with the opening model if it never
    took part. The global model does not change. A device that is cut off keeps its model from before the round.

    With a single device the algorithm is FedAvg.
    """

    device_vectors: ClassVar = ("model",)
    vectors_down: ClassVar = 0
    vectors_up: ClassVar = 0

    def receive(self, model: Tensor, state: ServerState, devices: Receivers) -> Received:
        return Received(devices.own("model", model))

    def keep(self, trained: Trained, sent: Tensor, state: ServerState, own: Vectors) -> Vectors:
        return {"model": trained.local}

    def aggregate(self, model: Tensor, updates: Updates, state: ServerState) -> tuple[Tensor, ServerState]:
        return model, state

    def deployed(self, model: Tensor, state: ServerState, devices: Receivers) -> Tensor:
        return devices.own("model", model)
