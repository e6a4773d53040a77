"""Train in a cell that exchanges its model with a cloud, which averages the models of several cells."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import torch

from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.stages import TrainStage
from edgefl.learning.updates.cloud_models import CloudModels


class CloudTrainStage(TrainStage):
    """The training stage of a cell that exchanges its global model with the cloud."""

    def __init__(self, cloud: CloudModels, *parts: Any) -> None:
        super().__init__(*parts)
        self._cloud = cloud

    def aggregate(self, ids: Sequence[int], weights: Sequence[float] | None = None) -> None:
        # with weights, the cell's model stands for all participants, not only for those whose updates arrived
        behind = ids if weights is None else list(self.federation.model.waiting)
        super().aggregate(ids, weights)
        self._cloud.hear(self.trainer.cell, self.trainer.device_data.sizes(behind))

    def submit(self) -> int:
        return self._cloud.send(self.trainer.cell, self.federation.model.model)

    def adopt(self, cells: Sequence[int], aggregated: bool) -> None:
        self.federation.model.adopt(self._cloud.mean(cells), as_next=not aggregated)


def below_a_cloud(learners: Iterable[TorchLearner], torch_device: torch.device) -> CloudModels:
    """Connect the learners of several cells to one cloud, and return the cloud's models."""
    cloud = CloudModels(torch_device)
    for learner in learners:
        learner.stage_of_training = partial(CloudTrainStage, cloud)
    return cloud
