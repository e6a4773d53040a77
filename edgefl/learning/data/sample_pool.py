"""Generate the samples of groups on demand, and keep them on the torch device."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from edgefl.errors import about
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import SamplesByGroup
from edgefl.learning.finite import require_finite


class SamplePool:
    """Generate the samples of requested groups, and keep the samples of the last request in memory.

    Args:
        split: the split whose samples are replaced by the samples of requested groups; at first it holds group 0.
        threads: threads that generate samples; the samples do not depend on the number of threads.
    """

    def __init__(self, by_group: SamplesByGroup, split: SplitInMemory, threads: int = 1) -> None:
        self._by_group, self._split, self._threads = by_group, split, threads
        self._first: dict[int, int] = {0: 0}  # group -> index of its first sample
        self._sizes = by_group.sizes
        self._kinds = split.x.cpu().numpy()[:0], split.y.cpu().numpy()[:0]

    def bring(self, groups: Sequence[int]) -> None:
        """Replace the split's samples by these groups' samples, unless all these groups are loaded.

        The samples are generated when they are first read, since a round's work can be computed without the samples.
        """
        if all(group in self._first for group in groups):
            return
        ends = np.cumsum(self._sizes[list(groups)]).tolist()
        self._first = {group: int(end - self._sizes[group]) for group, end in zip(groups, ends, strict=True)}
        self._split.replace(ends[-1], lambda: self._made(groups, ends))

    def _made(self, groups: Sequence[int], ends: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Generate the samples of groups in arrays [n, ...]; `ends` has the index after each group's last sample."""
        x, y = (np.empty((ends[-1], *kind.shape[1:]), kind.dtype) for kind in self._kinds)

        def make(group: int, end: int) -> None:
            made = self._by_group.of(group)
            with about("learning", "dataset"):
                require_finite(made.x, f"the training data of group {group}")
            x[end - len(made.y) : end], y[end - len(made.y) : end] = made.x, made.y

        with ThreadPoolExecutor(self._threads) as threads:
            list(threads.map(make, groups, ends))
        return x, y

    def rows(self, group: int) -> np.ndarray:
        """Return the indices of a loaded group's samples in the split."""
        return np.arange(self._first[group], self._first[group] + self._sizes[group])
