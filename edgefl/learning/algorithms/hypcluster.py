"""Several global models; each device trains the one with the lowest loss on its data."""

from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms import Members, Notes, Receivers, ServerState
from edgefl.learning.algorithms._clustered import Clustered, shifted
from edgefl.learning.tensors import Tensor


class HypCluster(Clustered):
    """C models, each trained by the devices whose training data it fits best.

    Mansour et al., Three Approaches for Personalization with Applications to Federated Learning, 2020. A device
    receives all C models, which `learning.cost.payload: exchanged` counts, and sends one. Which one it trains, and
    its loss, are the columns cluster and lowest_loss of devices.csv.

    At first model 0 is the opening model; the others are it plus normal noise of `spread`, for models that
    are all alike would stay so. The noise is a function of these parameters alone, not of the run's seed. The models
    go on from session to session.

    C = 1 is FedAvg.
    """

    models: int = Field(2, ge=1, le=100, description="C: number of models")
    spread: ClassVar[float] = 0.1  # standard deviation of the numbers by which the models differ at first
    models_seed: ClassVar[int] = 0  # which draw of these numbers

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
