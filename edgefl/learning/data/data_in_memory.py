"""Keep a data set's raw samples in the memory of the training device, CPU or GPU, and normalise each batch."""

import copy
import threading
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.tested_labels import TestedLabels
from edgefl.learning.datasets import Split
from edgefl.learning.objective import CLASSIFICATION
from edgefl.learning.tasks import Task

READY_BYTES, READY_SETS = 32_000_000, 4  # READY_SETS label sets are cached, each in up to READY_BYTES


class SplitInMemory:
    """Training or test samples on a torch device, as raw inputs [n, *shape] and labels [n] or other targets.

    Inputs keep their type (uint8 for images), which takes a quarter of the memory and bandwidth of floats.

    Args:
        split: the samples, possibly in several versions ("laps", such as before and after a drift): sample i of lap l
            is sample l n + i. If all laps have the same inputs, the inputs are stored once.
        count: number n of samples in a lap; by default there is a single lap.

    Attributes:
        labels, groups: kind and group of each sample, [n]; groups is None if the data set has no groups.
        task: the task that the targets belong to.
        kinds: kind of each sample, [n]; by default the sample's label.
        augmentation: how local training augments samples; None: samples are not augmented.
        tested: labels of these samples with their names, for errors about missing labels, or None.
    """

    def __init__(
        self,
        split: Split,
        mean: np.ndarray,
        std: np.ndarray,
        torch_device: torch.device,
        task: Task = CLASSIFICATION,
        kinds: np.ndarray | None = None,
        augmentation: Augmentation | None = None,
        count: int | None = None,
        tested: TestedLabels | None = None,
    ) -> None:
        self.tested = tested
        self.augmentation = augmentation
        self.task = task
        self.kinds = None if kinds is None else torch.from_numpy(kinds).to(torch_device)
        self.count = count or len(split.y)  # n
        self.labels: np.ndarray = split.y[: self.count] if kinds is None else kinds
        self.groups = split.groups
        self._x = torch.from_numpy(np.ascontiguousarray(split.x)).to(torch_device)
        self._y = torch.from_numpy(split.y).to(torch_device)
        self._make: Callable[[], tuple[np.ndarray, np.ndarray]] | None = None
        self._making = threading.Lock()
        self.mean = torch.as_tensor(mean, dtype=torch.float32, device=torch_device)
        self.scale = 1.0 / torch.as_tensor(std, dtype=torch.float32, device=torch_device)
        self.scaling: tuple[float, float] | None = None  # (mean, 1/std) if both are scalars
        if self.mean.numel() == self.scale.numel() == 1:
            self.scaling = (float(self.mean), float(self.scale))
        self._forget()
        self._readers = [SampleReader(self)]

    def _forget(self) -> None:
        """Clear the caches of labels, normalised inputs and laps."""
        self._labels: dict[tuple[int, ...], Tensor] = {}
        self._ready: dict[tuple[int, ...], Tensor] = {}
        self._laps: dict[int, SplitInMemory] = {}

    @property
    def x(self) -> Tensor:
        """Raw inputs [n, *shape]."""
        self._fetch()
        return self._x

    @property
    def y(self) -> Tensor:
        """Labels [n], or other targets [n, ...]."""
        self._fetch()
        return self._y

    def replace(self, count: int, make: Callable[[], tuple[np.ndarray, np.ndarray]]) -> None:
        """Replace all samples with new samples, which are made when they are first read.

        Args:
            count: number n of samples.
            make: returns inputs [n, ...] and targets [n, ...] of the same shapes and types as the current samples.
        """
        self.count, self._make = count, make
        self._x, self._y = self._x[:0].clone(), self._y[:0].clone()  # free memory for the new samples
        self._forget()

    def _fetch(self) -> None:
        if self._make is None:
            return
        with self._making:  # only one of the threads that read the first batches makes the samples
            if self._make is not None:
                self._x, self._y = (torch.from_numpy(one).to(self._x.device) for one in self._make())
                self._make = None

    def lap(self, number: int) -> "SplitInMemory":
        """Return the samples of one lap, counted from 0, as a separate split that shares this split's memory.

        A sample's kind is the same in all laps: its kind in lap 0.
        """
        if number not in self._laps:
            begin, end = number * self.count, (number + 1) * self.count
            x, y = self.x, self.y  # make the samples before copying; otherwise the copy would make them again
            self._laps[number] = lap = copy.copy(self)
            lap._x, lap._y = x[begin:end] if len(x) == len(y) else x, y[begin:end]
            lap.kinds = y[: self.count] if self.kinds is None else self.kinds
            lap._forget()
            lap._readers = [SampleReader(lap)]
        return self._laps[number]

    def normalised(self, rows: Tensor) -> Tensor:
        """Return (x - mean) / std of samples [...], float32 [..., *shape]; the next call overwrites the result."""
        return self._readers[0].normalised(rows)

    def readers(self, count: int) -> "list[SampleReader]":
        """Return `count` readers of these samples, one for each thread."""
        self._readers += [SampleReader(self) for _ in range(count - len(self._readers))]
        return self._readers[:count]

    def ready(self, labels: Sequence[int]) -> Tensor | None:
        """Return the normalised inputs [n, *shape] of all samples with one of these labels, in sample order.

        Inputs of small data sets are cached, since every round's evaluation reads them; for large data, return None.
        """
        chosen, key = self.with_labels(labels), tuple(labels)
        numbers = len(chosen) * self.x[0].numel()
        if key not in self._ready and 4 * numbers <= READY_BYTES:
            if len(self._ready) == READY_SETS:
                self._ready.clear()
            self._ready[key] = SampleReader(self).normalised(chosen)
        return self._ready.get(key)

    def with_labels(self, labels: Sequence[int]) -> Tensor:
        """Return the indices of the samples with one of these labels."""
        key = tuple(labels)
        if key not in self._labels:
            (self.tested or TestedLabels(self.labels)).require(key)
            wanted = torch.tensor(key, device=self.y.device)
            kinds = self.y[: self.count] if self.kinds is None else self.kinds
            self._labels[key] = torch.isin(kinds, wanted).nonzero().squeeze(1)
        return self._labels[key]


class SampleReader:
    """A thread's reader of samples, which gathers samples into buffers that the next call overwrites.

    Allocating memory for every batch would take longer than gathering the samples.
    """

    def __init__(self, split: SplitInMemory) -> None:
        self._split = split
        self.scaling = split.scaling
        self.numbers = split.x[0].numel()  # number of values in a sample
        self._gathered = split.x.new_empty((0, *split.x.shape[1:]))
        self._floats = self._gathered.float()  # shares memory with `_gathered` if samples are float32
        self._make_room(torch.Size([0]))

    def raw(self, rows: Tensor, views: Tensor | None = None) -> Tensor:
        """Return the samples `rows` [...] unscaled, float32 [..., *shape]; calls of equal shape reuse one tensor.

        Args:
            views: augmented view of each sample [...], or None without augmentation.
        """
        if self._asked != rows.shape:
            self._make_room(rows.shape)
        x = self._split.x
        rows_of_x = rows.remainder(len(x)) if len(x) < len(self._split.y) else rows
        torch.index_select(x, 0, rows_of_x.reshape(-1), out=self._part)
        if views is not None and self._split.augmentation is not None:
            self._float_part.copy_(self._split.augmentation.seen(self._part, views.reshape(-1)))
        elif self._part.dtype != torch.float32:  # float32 samples are already in the returned tensor
            self._float_part.copy_(self._part)
        return self._gathered_floats

    def raw_between(self, first: int, end: int) -> Tensor:
        """Return the consecutive samples `first` to `end` - 1 as `raw` does, float32 [end - first, *shape]."""
        if end > len(self._split.x):  # beyond the stored inputs, which all laps share
            return self.raw(torch.arange(first, end, device=self._split.x.device))
        if self._asked != (end - first,):
            self._make_room(torch.Size([end - first]))
        return self._gathered_floats.copy_(self._split.x[first:end])

    def normalised(self, rows: Tensor, views: Tensor | None = None) -> Tensor:
        """Return (x - mean) / std of the samples `rows` [...], float32 [..., *shape]; `views` is as in `raw`."""
        return self.raw(rows, views).sub_(self._split.mean).mul_(self._split.scale)

    def labels(self, rows: Tensor) -> Tensor:
        """Return the labels, or other targets, [...] of the samples `rows` [...]."""
        y = self._split.y
        return y.take(rows) if y.dim() == 1 else y[rows]

    def _make_room(self, asked: torch.Size) -> None:
        count, shape, self._asked = asked.numel(), self._gathered.shape[1:], asked
        if len(self._gathered) < count:
            self._gathered = self._gathered.new_empty((count, *shape))
            self._floats = self._gathered.float()
        self._part, self._float_part = self._gathered[:count], self._floats[:count]
        self._gathered_floats = self._float_part.view(*asked, *shape)
