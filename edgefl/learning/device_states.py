"""Vectors that devices keep between rounds, whichever server they meet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

# On a GPU, vectors of the whole population that need more than this share of its memory stay on the host.
CUDA_SHARE = 0.25
BLOCK_BYTES = 64_000_000


@dataclass
class _Table:
    rows: Tensor  # [N, n]
    known: np.ndarray  # [N] whether a device has one


class DeviceStates:
    """A row per device and name, kept where there is room and handed out on the torch device.

    Rows are made when the first device keeps one; on a host they take memory only as they are written.

    Args:
        population: N, all devices there are; they are numbered from 0.
        device: where the rows are used.
    """

    def __init__(self, population: int, device: torch.device) -> None:
        self._population = population
        self._device = device
        self._tables: dict[str, _Table] = {}

    def rows(self, name: str, ids: Sequence[int], missing: Tensor) -> Tensor:
        """[k, n] copies of the devices' rows; without one it is `missing`, [n] or the device's of [k, n]."""
        found = missing.expand(len(ids), -1).clone()
        table = self._tables.get(name)
        if table is not None:
            there = [k for k, id_ in enumerate(ids) if table.known[id_]]
            if there:
                kept = table.rows[[ids[k] for k in there]]
                found[there] = kept.to(self._device)
        return found

    def keep(self, name: str, ids: Sequence[int], rows: Tensor) -> None:
        """Replace the devices' rows by rows [k, n]."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._new_table(rows.shape[1])
        table.rows[list(ids)] = rows.to(table.rows.device)
        table.known[list(ids)] = True

    def mean(self, name: str, ids: Sequence[int], weights: np.ndarray, like: Tensor) -> Tensor:
        """[n] weighted sum of the devices' rows, zero where there is none; as `like` [n]."""
        total = torch.zeros_like(like)
        for begin, end in self._blocks(len(ids), like):
            share = torch.as_tensor(weights[begin:end], dtype=like.dtype, device=like.device)
            total += share @ self.rows(name, ids[begin:end], torch.zeros_like(like))
        return total

    def shift(self, name: str, ids: Sequence[int], by: Tensor) -> None:
        """Add [n] to the rows of the devices, zero where there was none; nothing if no device has one."""
        if name not in self._tables:
            return
        for begin, end in self._blocks(len(ids), by):
            block = ids[begin:end]
            self.keep(name, block, self.rows(name, block, torch.zeros_like(by)).add_(by))

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The rows that devices have, [k, n] by name, and the ids of those devices by name."""
        ids = {name: np.flatnonzero(table.known).tolist() for name, table in self._tables.items()}
        return {name: self._tables[name].rows[rows] for name, rows in ids.items()}, {"ids": ids}

    def restore(self, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
        """Take over what `state` gave."""
        self._tables = {}
        for name, ids in facts["ids"].items():
            self.keep(name, ids, tensors[name])

    def _blocks(self, count: int, like: Tensor) -> list[tuple[int, int]]:
        size = max(1, BLOCK_BYTES // (4 * max(1, like.numel())))
        return [(begin, min(begin + size, count)) for begin in range(0, count, size)]

    def _new_table(self, size: int) -> _Table:
        known = np.zeros(self._population, dtype=bool)
        if self._device.type == "cuda":
            room = CUDA_SHARE * torch.cuda.get_device_properties(self._device).total_memory
            if 4 * self._population * size <= room:
                return _Table(torch.zeros(self._population, size, device=self._device), known)
        # NumPy's zeros are pages that the system hands out when they are written
        return _Table(torch.from_numpy(np.zeros((self._population, size), dtype=np.float32)), known)
