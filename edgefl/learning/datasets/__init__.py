"""Data sets, which provide training samples for devices, and test samples.

To add a data set, add a module here that defines one `Dataset`. `_files` has the base class of data sets with
published files; the base class finds, downloads and verifies these files.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, Self

import numpy as np

from edgefl.config.component import Component

__all__ = ["Data", "Dataset", "SamplesByGroup", "Split"]


@dataclass(frozen=True)
class Split:
    """Samples and their labels, for training or for testing.

    x: raw values as published, [n, *shape]. Images are uint8, [height, width] if grey and [channels, height, width]
        in colour; texts are token ids [length], uint8 or int16, padded with 0; features are float32.
    y: labels 0 to C-1, [n] int64. For other tasks: values [n] float32; [n, L] float32 if a sample may have several
        labels; [n, length] int64 if each token of a text has a label.
    groups: origin of each sample (a writer, a role) as its number in `Data.group_names`, [n] int64; None if unknown.
    """

    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> "Split":
        """Return the samples at the given indices, or the samples that a mask selects."""
        return Split(self.x[rows], self.y[rows], None if self.groups is None else self.groups[rows])

    @classmethod
    def joined(cls, parts: Sequence["Split"]) -> "Split":
        """Concatenate splits; either all splits or none must have groups."""
        x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y"))
        groups = [part.groups for part in parts if part.groups is not None]
        return cls(x, y, np.concatenate(groups) if groups else None)


class SamplesByGroup(Protocol):
    """Training samples that are generated or read on demand, group by group.

    sizes: number of training samples of each group, at least 1, [groups] int64.
    content: checksum of everything that the data set's parameters do not determine; empty if they determine all.
    """

    sizes: np.ndarray
    content: str

    def of(self, group: int) -> Split:
        """Return a group's training samples; every call must return the same samples."""


@dataclass(frozen=True)
class Data:
    """A data set in memory; models see a sample x as (x - mean) / std.

    by_group: access to the training samples on demand, if they do not fit in memory; `train` then contains only the
        samples of group 0, as an example. None if `train` contains all training samples.
    mean, std: mean and standard deviation of the training samples in raw units, float32; scalar [], or one value per
        channel in a shape that broadcasts over a sample. For tokens, mean is 0 and std is 1, so that token ids stay
        exact in float32.
    num_classes: the number of classes C; for other tasks the number of outputs, which is 1 for a regression.
    label_names: names of the C labels, in order; for other tasks the names of the outputs.
    group_names: names of the groups; empty if `Split.groups` is None. A group need not occur in both splits.
    source: a user's file and its targets as stored, such as `a.npz: y is float64 [600]`, for messages; or empty.
    left_out: number of test samples, by label, that `test` lacks because no training sample has their label.
    """

    train: Split
    test: Split
    num_classes: int
    mean: np.ndarray
    std: np.ndarray
    label_names: tuple[str, ...]
    group_names: tuple[str, ...] = ()
    by_group: SamplesByGroup | None = None
    source: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)

    @property
    def splits(self) -> dict[str, Split]:
        """The samples for training and for testing, by name."""
        return {"training": self.train, "test": self.test}

    def targets_of(self, name: str) -> str:
        """Return a phrase for messages on the type and shape of a split's targets."""
        y = self.splits[name].y
        return self.source or f"the {name} targets are {y.dtype} {list(y.shape)}"

    @classmethod
    def unscaled(
        cls, train: Split, test: Split, label_names: tuple[str, ...], group_names: tuple[str, ...] = ()
    ) -> Self:
        """Make a data set without scaling, that is, with mean 0 and std 1."""
        zero, one = np.array(0, np.float32), np.array(1, np.float32)
        return cls(train, test, len(label_names), zero, one, label_names, group_names)


class Dataset(Component):
    """Base class of all data sets."""

    @property
    def task(self) -> str:
        """The name of the task for these samples; `learning.task` may name another task."""
        return "classification"

    @abstractmethod
    def load(self) -> Data:
        """Read and verify all samples; download missing files if the data set supports it.

        Raises:
            EdgeflError: files are missing or damaged, or belong to another data set.
        """

    def least_bytes(self) -> int:
        """Return a lower bound of the samples' memory in bytes, computed from the data set's parameters alone."""
        return 0

    def check(self) -> None:
        """Check with a few `stat` calls that the data set's files are on this machine, without downloads.

        Data sets that ship with edgefl or are generated need not override this method.

        Raises:
            EdgeflError: files are missing.
        """
