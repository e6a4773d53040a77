"""Data sets: the samples that devices learn from.

A new data set is a module here with one `Dataset`; `_file_dataset` is the base of those that
read published files, which `_files` finds, downloads and verifies.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from edgefl.config.component import Component

__all__ = ["Data", "Dataset", "SamplesByGroup", "Split"]


@dataclass(frozen=True)
class Split:
    """Samples and their labels.

    x: [n, *shape], raw values as the data set ships them. Images are uint8, [height, width] if grey and
        [channels, height, width] in colour; texts are token numbers [length], uint8 or int16, padded with 0;
        features are float32.
    y: [n] int64 labels, 0 to C-1; of other tasks than classification, what these take: numbers [n] float32,
        [n, L] float32 where a sample may have several labels, [n, length] int64 where each token of a text has one.
    groups: [n] int64, the origin of each sample (a writer, a role), numbered as in `Data.group_names`; None
        where the data set does not say.
    """

    x: np.ndarray
    y: np.ndarray
    groups: np.ndarray | None = None

    def part(self, rows: np.ndarray) -> "Split":
        """Return some of the samples, by their places or a bool for each."""
        return Split(self.x[rows], self.y[rows], None if self.groups is None else self.groups[rows])

    @classmethod
    def joined(cls, parts: Sequence["Split"]) -> "Split":
        """Return the samples of parts, one behind the other; all of them say groups, or none does."""
        x, y = (np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y"))
        groups = [part.groups for part in parts if part.groups is not None]
        return cls(x, y, np.concatenate(groups) if groups else None)


class SamplesByGroup(Protocol):
    """Training samples that are made, or read, group by group, when somebody asks for them.

    sizes: [groups] int64, how many training samples each group has, at least 1.
    content: a checksum of what the data set's parameters do not say; empty: they say all.
    """

    sizes: np.ndarray
    content: str

    def of(self, group: int) -> Split:
        """Return a group's training samples; for the same group the same ones, however often it is asked."""


@dataclass(frozen=True)
class Data:
    """A data set in memory. A model sees (x - mean) / std.

    by_group: where there are too many training samples for the memory, what makes those of a group; `train` then
        holds those of group 0 alone, as an example. None: `train` holds all of them.

    mean, std: float32 in raw units, of the training samples; scalar [], or one value per channel in a
        shape that broadcasts over a sample. 0 and 1 for tokens: as float32 they stay exact.
    label_names: C names, in the order of the labels.
    group_names: names of the groups; empty where `Split.groups` is None. Not every group need occur in
        both splits.
        Of other tasks than classification num_classes, C, is the number of outputs, 1 for a regression, and
        label_names what they stand for.
    """

    train: Split
    test: Split
    num_classes: int
    mean: np.ndarray
    std: np.ndarray
    label_names: tuple[str, ...]
    group_names: tuple[str, ...] = ()
    by_group: SamplesByGroup | None = None

    @classmethod
    def unscaled(
        cls, train: Split, test: Split, label_names: tuple[str, ...], group_names: tuple[str, ...] = ()
    ) -> Self:
        """Make a data set that a model sees as it is: mean 0 and std 1."""
        zero, one = np.array(0, np.float32), np.array(1, np.float32)
        return cls(train, test, len(label_names), zero, one, label_names, group_names)


class Dataset(Component):
    """Base of all data sets."""

    @property
    def task(self) -> str:
        """The name of the task that the samples are for, which `learning.task` may replace."""
        return "classification"

    @abstractmethod
    def load(self) -> Data:
        """Read and verify all samples; download missing files if the data set is offered for download.

        Raises:
            EdgeflError: files missing, damaged or of another data set.
        """

    def least_bytes(self) -> int:
        """Return how much memory the samples take at least, in bytes, as far as the parameters alone tell."""
        return 0

    def check(self) -> None:
        """Check that the files are on this machine, at the cost of a few `stat` calls; download nothing.

        Of data that come with edgefl, or are generated, there is nothing to check.

        Raises:
            EdgeflError: files missing.
        """
