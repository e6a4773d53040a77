"""A data set where it is trained: raw bytes on the CPU or GPU, normalised batch by batch."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Split


class DeviceSplit:
    """Raw inputs [n, *shape] and labels [n] on a torch device.

    Inputs stay in their own type (uint8 for images): a quarter of the memory and of the traffic of floats.
    """

    def __init__(self, split: Split, mean: np.ndarray, std: np.ndarray, device: torch.device) -> None:
        self.x = torch.from_numpy(np.ascontiguousarray(split.x)).to(device)
        self.y = torch.from_numpy(split.y).to(device)
        self.mean = torch.as_tensor(mean, dtype=torch.float32, device=device)
        self.scale = 1.0 / torch.as_tensor(std, dtype=torch.float32, device=device)
        self.scaling: tuple[float, float] | None = (
            None  # (mean, 1/std), if all of a sample's numbers share them
        )
        if self.mean.numel() == self.scale.numel() == 1:
            self.scaling = (float(self.mean), float(self.scale))
        self._labels: dict[tuple[int, ...], Tensor] = {}
        self._reader = Reader(self)

    def normalised(self, rows: Tensor) -> Tensor:
        """(x - mean) / std of the samples rows [...], float32 [..., *shape]; the next call overwrites it."""
        return self._reader.normalised(rows)

    def with_labels(self, labels: Sequence[int]) -> Tensor:
        """Indices of the samples that carry one of the labels."""
        key = tuple(labels)
        if key not in self._labels:
            wanted = torch.tensor(key, device=self.y.device)
            rows = torch.isin(self.y, wanted).nonzero().squeeze(1)
            if not len(rows):
                raise EdgeflError(f"the test data hold no sample of the labels {list(key)}")
            self._labels[key] = rows
        return self._labels[key]


class Reader:
    """Gathers samples into its own buffers, which the next call overwrites: one for each thread.

    Fresh pages for every batch would cost more than the gather itself.
    """

    def __init__(self, split: DeviceSplit) -> None:
        self._split = split
        self.scaling = split.scaling
        self._gathered = split.x.new_empty((0, *split.x.shape[1:]))
        self._floats = torch.empty_like(self._gathered, dtype=torch.float32)
        self._make_room(torch.empty(0))

    def raw(self, rows: Tensor) -> Tensor:
        """The samples rows [...] as they are, in float32 [..., *shape]; for equal shapes the same tensor."""
        if self._found.shape[: rows.dim()] != rows.shape:
            self._make_room(rows)
        torch.index_select(self._split.x, 0, rows.reshape(-1), out=self._part)
        self._float_part.copy_(self._part)
        return self._found

    def normalised(self, rows: Tensor) -> Tensor:
        """(x - mean) / std of the samples rows [...], as float32 [..., *shape]."""
        return self.raw(rows).sub_(self._split.mean).mul_(self._split.scale)

    def _make_room(self, rows: Tensor) -> None:
        count, shape = rows.numel(), self._gathered.shape[1:]
        if len(self._gathered) < count:
            self._gathered = self._gathered.new_empty((count, *shape))
            self._floats = torch.empty_like(self._gathered, dtype=torch.float32)
        self._part, self._float_part = self._gathered[:count], self._floats[:count]
        self._found = self._float_part.view(*rows.shape, *shape)
