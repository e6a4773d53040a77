"""The vectors that devices keep between rounds, whichever server they meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

# Vectors of all devices that would need more than this share of a GPU's memory stay in the CPU's.
CUDA_SHARE = 0.25
BLOCK_BYTES = 64_000_000


@dataclass
class _Table:
    rows: Tensor  # [N, n]
    known: np.ndarray  # [N] whether a device has one


class DeviceStates:
    """Rows by device and name, kept on the GPU or the CPU by size, and handed out on `torch_device`.

    A name's rows are made when the first device keeps one; on a CPU they take memory only as they are written.

    Args:
        population: N, the number of all devices; they are numbered from 0.
        torch_device: where the rows are used.
    """

    def __init__(self, population: int, torch_device: torch.device) -> None:
        self._population = population
        self._torch_device = torch_device
        self._tables: dict[str, _Table] = {}

    def rows(self, name: str, ids: Sequence[int], missing: Tensor) -> Tensor:
        """Return [k, n] copies of the devices' rows, or of `missing` [n] or [k, n] for a device without one."""
        rows = missing.expand(len(ids), -1).clone()
        table = self._tables.get(name)
        if table is not None:
            there = [k for k, id_ in enumerate(ids) if table.known[id_]]
            if there:
                kept = table.rows[[ids[k] for k in there]]
                rows[there] = kept.to(self._torch_device)
        return rows

    def keep(self, name: str, ids: Sequence[int], rows: Tensor) -> None:
        """Replace the devices' rows by rows [k, n]."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._new_table(rows.shape[1])
        table.rows[list(ids)] = rows.to(table.rows.device)
        table.known[list(ids)] = True

    def mean(self, name: str, ids: Sequence[int], weights: np.ndarray, like: Tensor) -> Tensor:
        """Return [n] the weighted sum of the devices' rows, zeros where there is none; a tensor like `like`."""
        total = torch.zeros_like(like)
        for begin, end in self._blocks(len(ids), like):
            share = torch.as_tensor(weights[begin:end], dtype=like.dtype, device=like.device)
            total += share @ self.rows(name, ids[begin:end], torch.zeros_like(like))
        return total

    def shift(self, name: str, ids: Sequence[int], by: Tensor) -> None:
        """Add `by` [n] to the devices' rows, or to zeros where there is none; do nothing if no device has a row."""
        if name not in self._tables:
            return
        for begin, end in self._blocks(len(ids), by):
            block = ids[begin:end]
            self.keep(name, block, self.rows(name, block, torch.zeros_like(by)).add_(by))

    def tensors(self) -> dict[str, Tensor]:
        """Return all rows for `restore`: of each name, ids [n] and rows [n, size]."""
        tensors: dict[str, Tensor] = {}
        for name, table in self._tables.items():
            ids = np.flatnonzero(table.known)
            tensors[f"{name}/ids"], tensors[f"{name}/rows"] = torch.from_numpy(ids), table.rows[ids]
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace all rows by what `tensors` gave."""
        self._tables.clear()
        for name in tensors:
            if name.endswith("/ids"):
                self.keep(name.removesuffix("/ids"), tensors[name].tolist(), tensors[f"{name[:-4]}/rows"])

    def _blocks(self, count: int, like: Tensor) -> list[tuple[int, int]]:
        size = max(1, BLOCK_BYTES // (4 * max(1, like.numel())))
        return [(begin, min(begin + size, count)) for begin in range(0, count, size)]

    def _new_table(self, size: int) -> _Table:
        known = np.zeros(self._population, dtype=bool)
        if self._torch_device.type == "cuda":
            room = CUDA_SHARE * torch.cuda.get_device_properties(self._torch_device).total_memory
            if 4 * self._population * size <= room:
                return _Table(torch.zeros(self._population, size, device=self._torch_device), known)
        # NumPy's zeros are pages that the system hands out when they are written
        return _Table(torch.from_numpy(np.zeros((self._population, size), dtype=np.float32)), known)
