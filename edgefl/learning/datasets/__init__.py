"""Data sets: what the devices learn from.

A new one is a file here with one `Dataset`; `_files` finds, verifies and reads the files it lives on.
"""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from edgefl.component import Component


@dataclass(frozen=True)
class Split:
    """Samples and their labels.

    x: [n, *shape] uint8, raw values as the data set ships them.
    y: [n] int64 labels, 0 to C-1.
    """

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Data:
    """A data set in memory. A model sees (x - mean) / std.

    mean, std: float32 in raw units, of the training samples; scalar [], or one value per channel in a
        shape that broadcasts over a sample.
    label_names: C names, in the order of the labels.
    """

    train: Split
    test: Split
    num_classes: int
    mean: np.ndarray
    std: np.ndarray
    label_names: tuple[str, ...]


class Dataset(Component):
    """Base of all data sets."""

    @abstractmethod
    def load(self) -> Data:
        """Read and verify all samples; fetches files that are missing where the data set can be fetched.

        Raises:
            EdgeflError: files missing, damaged or of another data set.
        """

    @abstractmethod
    def check(self) -> None:
        """Look whether the files are on this machine, at the cost of a few `stat` calls; never downloads.

        Raises:
            EdgeflError: files missing.
        """
