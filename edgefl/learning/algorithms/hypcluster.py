"""HypCluster has several global models; each device trains the model with the lowest loss on its data."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Notes, Receivers, ServerState
from edgefl.learning.algorithms._clustered import Clustered, shifted
from edgefl.learning.tensors import Tensor


class HypCluster(Clustered):
    """Keep C global models; each device trains the model that fits its training data best.

    Mansour et al., Three Approaches for Personalization with Applications to Federated Learning, 2020. A device
    receives all C models, which `learning.cost.payload: exchanged` counts, and sends one model. The columns cluster
    and lowest_loss of devices.csv report the model that a device trains, and its loss.

    Model 0 starts as the opening model; the other models start as the opening model plus normal noise of standard
    deviation `spread`, because equal models would stay equal. The noise does not depend on the run's seed. The models
    continue from session to session.

    With C = 1 the algorithm is FedAvg.
    """

    models: int = Field(2, ge=1, le=100, description="C: number of models")
    spread: ClassVar[float] = 0.1  # standard deviation of the initial noise
    models_seed: ClassVar[int] = 0  # seed of the initial noise

    def init_state(self, start: Tensor, last: ServerState, members: Members) -> ServerState:
        import torch

        if last:
            return shifted(start, last)
        generator = torch.Generator().manual_seed(self.models_seed)
        noise = torch.randn(self.models - 1, len(start), generator=generator).to(start)
        return {
            "models": torch.cat([start.unsqueeze(0), start + self.spread * noise]),
            "global": start,
        }

    def choose(self, losses: Tensor, state: ServerState, devices: Receivers) -> tuple[Tensor, Notes]:
        return losses.argmin(1), {}
