"""Train in a cell that exchanges its model with a cloud, which averages the models of several cells."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from edgefl.learning.federation.learner import TorchLearner
from edgefl.learning.federation.stages import TrainStage


class CloudModels:
    """The last model that each cell has sent to the cloud, and its weight in the mean, a number of samples.

    The weight counts the samples of all devices with updates that were aggregated since the cell sent its previous
    model: the cell's whole data if all devices take part in every round. A model without samples is not kept.

    Args:
        torch_device: torch device that stores the models.
    """

    def __init__(self, torch_device: torch.device) -> None:
        self._torch_device = torch_device
        self._models: dict[int, Tensor] = {}
        self._samples: dict[int, int] = {}
        self._heard: dict[int, dict[int, int]] = {}  # cell -> device -> samples

    def hear(self, cell: int, samples: Mapping[int, int]) -> None:
        """Record that a cell's model contains updates of these devices (id -> number of samples)."""
        self._heard.setdefault(cell, {}).update(samples)

    def send(self, cell: int, model: Tensor) -> int:
        """Store the model [M + Q] that a cell sends; return its weight, a number of samples."""
        samples = sum(self._heard.pop(cell, {}).values())
        if samples:
            self._models[cell], self._samples[cell] = model, samples
        return samples

    def mean(self, cells: Sequence[int]) -> Tensor:
        """Return the mean [M + Q] of these cells' last models, weighted by numbers of samples."""
        first, *others = cells
        if not others:
            return self._models[first]
        whole = sum(self._samples[cell] for cell in cells)
        # add one cell at a time, so that rounding is the same on all processors
        mean = self._models[first] * (self._samples[first] / whole)
        for cell in others:
            mean = mean + self._models[cell] * (self._samples[cell] / whole)
        return mean

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the cloud's models and counts for a snapshot."""
        facts = {
            "samples": [[cell, many] for cell, many in self._samples.items()],
            "heard": [[cell, list(of.items())] for cell, of in self._heard.items()],
        }
        return {str(cell): model for cell, model in self._models.items()}, facts

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Restore the cloud's models and counts that `state` returned."""
        self._models = {int(cell): model.to(self._torch_device) for cell, model in tensors.items()}
        self._samples = dict(facts["samples"])
        self._heard = {cell: dict(of) for cell, of in facts["heard"]}


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
