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
        self._mean = torch.as_tensor(mean, dtype=torch.float32, device=device)
        self._scale = 1.0 / torch.as_tensor(std, dtype=torch.float32, device=device)
        self._raw: Tensor | None = None
        self._floats: Tensor | None = None
        self._labels: dict[tuple[int, ...], Tensor] = {}

    def normalised(self, rows: Tensor) -> Tensor:
        """(x - mean) / std of the samples rows [...], as float32 [..., *shape].

        The result lies in a buffer that the next call overwrites: fresh pages for every batch would cost
        more than the gather itself.
        """
        shape = self.x.shape[1:]
        count = rows.numel()
        if self._raw is None or self._floats is None or len(self._raw) < count:
            self._raw = self.x.new_empty((count, *shape))
            self._floats = torch.empty_like(self._raw, dtype=torch.float32)
        raw, floats = self._raw[:count], self._floats[:count]
        torch.index_select(self.x, 0, rows.reshape(-1), out=raw)
        floats.copy_(raw).sub_(self._mean).mul_(self._scale)
        return floats.view(*rows.shape, *shape)

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
