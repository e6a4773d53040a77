"""Read data sets once for several runs, and compute their checksums."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np

from edgefl.config.answers import wrong
from edgefl.errors import EdgeflError

if TYPE_CHECKING:  # a run without learning must not load PyTorch
    from edgefl.learning.datasets import Data, Dataset

LARGEST_KEPT = 500_000_000  # maximum bytes of a data set that is cached for the next run


class Loaded:
    """Read data sets, and cache the last one, since consecutive runs of a study or a folder often share it.

    A data set that could not be read is not read again.

    Args:
        download: whether missing files may be downloaded, as in a run.
    """

    def __init__(self, download: bool) -> None:
        self._download = download
        self._last: tuple[Dataset, Data] | None = None
        self._checksums: list[tuple[Dataset, str]] = []
        self._failed: list[tuple[Dataset, EdgeflError]] = []

    def __call__(self, dataset: "Dataset") -> "Data":
        if self._last is not None and self._last[0] == dataset:
            return self._last[1]
        for missing, error in self._failed:
            if missing == dataset:
                raise error
        self._last = None
        try:
            if not self._download:
                dataset.check()
            data = dataset.load()
            if not hasattr(data, "train"):  # importing the class Data would load PyTorch
                raise wrong(dataset.load, data, "a Data", "learning", "dataset")
            of = tuple(data.train.x.shape[1:]), tuple(data.test.x.shape[1:])
            if of[0] != of[1]:
                raise EdgeflError(
                    f"samples have shape {list(of[0])} for training but {list(of[1])} for tests: make them equal",
                    ("learning", "dataset"),
                )
        except EdgeflError as error:
            self._failed.append((dataset, error))
            raise
        if sum(array.nbytes for array in (data.train.x, data.test.x)) <= LARGEST_KEPT:
            self._last = dataset, data
        return data

    def checksum(self, dataset: "Dataset") -> str:
        """Return the checksum of a data set's samples, computed on the first call."""
        known = next((its for one, its in self._checksums if one == dataset), None)
        if known is None:
            known = _checksum(self(dataset))
            self._checksums.append((dataset, known))
        return known


def _checksum(data: "Data") -> str:
    """Compute a checksum of a data set's samples, labels and groups, and of the scaling of its samples."""
    digest = hashlib.sha256()
    for split in (data.train, data.test):
        for array in (split.x, split.y, split.groups):
            if array is not None:
                digest.update(f"{array.shape}{array.dtype}".encode())
                digest.update(np.ascontiguousarray(array).data)
    if data.by_group is not None:  # not all samples are in memory
        digest.update(data.by_group.sizes.tobytes())
        digest.update(data.by_group.content.encode())
    digest.update(repr((data.num_classes, data.mean.tolist(), data.std.tolist())).encode())
    return digest.hexdigest()
