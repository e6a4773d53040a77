"""The devices of a run, with the vectors that they keep between rounds and cells, and their last cells."""

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.updates.rows import blocks

# If the vectors of all devices need more than this share of a GPU's memory, they stay in the CPU's memory.
CUDA_SHARE = 0.25
BLOCK_BYTES = 64_000_000


@dataclass
class _Table:
    rows: Tensor  # [N, n]
    known: np.ndarray  # [N] whether a device has a row
    data: np.ndarray  # [N] key of the data that a row belongs to

    def has(self, ids: Sequence[int], data: int) -> np.ndarray:
        """Return whether each device has a row for the data with this key, bool [k]."""
        return self.known[list(ids)] & (self.data[list(ids)] == data)


class DeviceStates:
    """The vectors that devices keep, by name, stored as rows on the GPU or the CPU, depending on their size.

    A name's rows are allocated when the first device keeps one; on a CPU, rows take memory only as they are written.
    A row belongs to the data that its device holds: once the data change, the device has no row.

    Args:
        population: the number N of all devices, which are numbered from 0.
        torch_device: torch device of the rows that are returned.
    """

    def __init__(self, population: int, torch_device: torch.device) -> None:
        self._population = population
        self.torch_device = torch_device
        self._tables: dict[str, _Table] = {}
        self._data: Callable[[], int] = lambda: 0

    def of(self, data: Callable[[], int]) -> "DeviceStates":
        """Return a view limited to rows that were kept for the current data; `data` returns the key of these data."""
        view = copy.copy(self)
        view._data = data
        return view

    def rows(self, name: str, ids: Sequence[int], missing: Tensor) -> Tensor:
        """Return copies [k, n] of the devices' rows, with `missing` [n] or [k, n] for a device without a row."""
        rows = missing.expand(len(ids), -1).clone()
        there = np.flatnonzero(self.has(name, ids)).tolist()
        if there:
            kept = self._tables[name].rows[[ids[k] for k in there]]
            rows[there] = kept.to(self.torch_device)
        return rows

    def has(self, name: str, ids: Sequence[int]) -> np.ndarray:
        """Return whether each device keeps a row of this name, bool [k]."""
        table = self._tables.get(name)
        return np.zeros(len(ids), dtype=bool) if table is None else table.has(ids, self._data())

    def keep(self, name: str, ids: Sequence[int], rows: Tensor) -> None:
        """Store rows [k, n] of this name for the devices, in place of earlier rows."""
        table = self._tables.get(name)
        if table is None:
            table = self._tables[name] = self._new_table(rows.shape[1])
        table.rows[list(ids)] = rows.to(table.rows.device)
        table.known[list(ids)] = True
        table.data[list(ids)] = self._data()

    def forget(self, name: str, ids: Sequence[int]) -> None:
        """Delete the devices' rows of this name."""
        if name in self._tables:
            self._tables[name].known[list(ids)] = False

    def mean(self, name: str, ids: Sequence[int], weights: np.ndarray, like: Tensor) -> Tensor:
        """Return the weighted sum [n] of the devices' rows, a tensor like `like`; a missing row counts as zeros."""
        total = torch.zeros_like(like)
        for begin, end in blocks(len(ids), like, BLOCK_BYTES):
            share = torch.as_tensor(weights[begin:end], dtype=like.dtype, device=like.device)
            total += share @ self.rows(name, ids[begin:end], torch.zeros_like(like))
        return total

    def shift(self, name: str, ids: Sequence[int], by: Tensor) -> None:
        """Add `by` [n] to the devices' rows, or to zeros for a missing row, unless the name has no rows at all."""
        if name not in self._tables:
            return
        for begin, end in blocks(len(ids), by, BLOCK_BYTES):
            block = ids[begin:end]
            self.keep(name, block, self.rows(name, block, torch.zeros_like(by)).add_(by))

    def tensors(self) -> dict[str, Tensor]:
        """Return all rows for `restore`: for each name, device ids [n], keys of data [n], and rows [n, size]."""
        tensors: dict[str, Tensor] = {}
        for name, table in self._tables.items():
            ids = np.flatnonzero(table.known)
            tensors[f"{name}/ids"], tensors[f"{name}/rows"] = torch.from_numpy(ids), table.rows[ids]
            tensors[f"{name}/data"] = torch.from_numpy(table.data[ids])
        return tensors

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Replace all rows by the rows that `tensors` returned."""
        self._tables.clear()
        for name in tensors:
            if name.endswith("/ids"):
                kept, ids = name.removesuffix("/ids"), tensors[name].tolist()
                self.keep(kept, ids, tensors[f"{kept}/rows"])
                self._tables[kept].data[ids] = tensors[f"{kept}/data"].numpy()

    def _new_table(self, size: int) -> _Table:
        known, data = np.zeros(self._population, dtype=bool), np.zeros(self._population, dtype=np.int64)
        if self.torch_device.type == "cuda":
            room = CUDA_SHARE * torch.cuda.get_device_properties(self.torch_device).total_memory
            if 4 * self._population * size <= room:
                return _Table(torch.zeros(self._population, size, device=self.torch_device), known, data)
        # NumPy's zeros take no memory until they are written, page by page
        return _Table(torch.from_numpy(np.zeros((self._population, size), dtype=np.float32)), known, data)


class RunDevices:
    """All devices of a run, present or not, shared by all cells; a device that changes its cell keeps its vectors.

    Args:
        count: number N of devices, which are numbered from 0.
        ids: id of each device in the run, by default its number.

    Attributes:
        states: the vectors that devices keep.
    """

    def __init__(self, count: int, torch_device: torch.device, ids: Sequence[int] | None = None) -> None:
        self.count, self.ids = count, range(count) if ids is None else ids
        self._torch_device = torch_device
        self.states = self.new_states()
        self._cell_of = np.full(count, -1)  # cell of each device's last session, or -1

    def new_states(self) -> DeviceStates:
        """Return an empty store for the vectors that all devices keep."""
        return DeviceStates(self.count, self._torch_device)

    def serve(self, cell: int, ids: Iterable[int]) -> None:
        """Record that these devices are now in a session of this cell."""
        self._cell_of[list(ids)] = cell

    def from_elsewhere(self, cell: int, ids: Iterable[int]) -> set[int]:
        """Return the given devices that were last in a session of another cell."""
        return {id_ for id_ in ids if self._cell_of[id_] not in (cell, -1)}

    def last_in(self, cell: int) -> list[int]:
        """Return all devices that were last in a session of this cell, sorted."""
        return np.flatnonzero(self._cell_of == cell).tolist()

    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Return the vectors that devices keep, and their last cells, for a snapshot."""
        return self.states.tensors(), {"cell_of": self._cell_of.tolist()}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, object]) -> None:
        """Restore the vectors that devices keep, and their last cells, as `state` returned them."""

        self.states.restore(tensors)
        self._cell_of = np.array(facts["cell_of"])
