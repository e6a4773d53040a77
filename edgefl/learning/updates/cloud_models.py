"""The models that cells have sent to the cloud, and their mean."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor


class CloudModels:
    """The last model of each cell at the cloud, and the number of samples behind it.

    The samples are those of all devices with an update in the model since the cell last sent one. If all devices take
    part in every round, they are the cell's whole data. A model without samples is not kept.

    Args:
        torch_device: device of the models.
    """

    def __init__(self, torch_device: torch.device) -> None:
        self._torch_device = torch_device
        self._models: dict[int, Tensor] = {}
        self._samples: dict[int, int] = {}
        self._heard: dict[int, dict[int, int]] = {}  # cell -> device -> samples

    def hear(self, cell: int, samples: Mapping[int, int]) -> None:
        """Record that updates of these devices (id -> number of samples) are in a cell's model."""
        self._heard.setdefault(cell, {}).update(samples)

    def send(self, cell: int, model: Tensor) -> int:
        """Receive a cell's model [M + Q]; return the number of samples behind it."""
        samples = sum(self._heard.pop(cell, {}).values())
        if samples:
            self._models[cell], self._samples[cell] = model, samples
        return samples

    def mean(self, cells: Sequence[int]) -> Tensor:
        """Return the mean of the last models of these cells, weighted by samples, [M + Q]."""
        first, *others = cells
        if not others:
            return self._models[first]
        whole = sum(self._samples[cell] for cell in cells)
        # one after the other, so that every processor rounds the same
        mean = self._models[first] * (self._samples[first] / whole)
        for cell in others:
            mean = mean + self._models[cell] * (self._samples[cell] / whole)
        return mean

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return the state, for a snapshot."""
        facts = {
            "samples": [[cell, many] for cell, many in self._samples.items()],
            "heard": [[cell, list(of.items())] for cell, of in self._heard.items()],
        }
        return {str(cell): model for cell, model in self._models.items()}, facts

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Restore a state returned by `state`."""
        self._models = {int(cell): model.to(self._torch_device) for cell, model in tensors.items()}
        self._samples = dict(facts["samples"])
        self._heard = {cell: dict(of) for cell, of in facts["heard"]}
