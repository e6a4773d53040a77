"""The training samples that each device holds, session by session."""

from collections.abc import Iterable, Sequence

import numpy as np

from edgefl.errors import about
from edgefl.learning.partitions import Facts, Partition
from edgefl.rng import Streams


class Holdings:
    """The partition of the training data, dealt anew whenever the partition says so.

    Args:
        labels: [samples] of the training data.
        devices: all devices of the run, present or not.
        facts: places and groups, for partitions that depend on them.

    Raises:
        EdgeflError: the partition cannot divide these data.
    """

    def __init__(
        self, partition: Partition, labels: np.ndarray, devices: int, streams: Streams, facts: Facts
    ) -> None:
        self._partition = partition
        self._labels = labels
        self._devices = devices
        self._streams = streams
        self._facts = facts
        self._key = -1
        self._samples: list[np.ndarray] = []
        with about("learning", "partition"):
            self.deal(1)  # what cannot be served is refused before anything is written

    def deal(self, session: int) -> None:
        """Deal the samples of a session to the devices."""
        key = self._partition.key(session)
        if self._key != key:
            self._samples = self._partition.assign(
                self._labels, self._devices, session, self._streams, self._facts
            )
            self._key = key

    @property
    def key(self) -> int:
        """The key of the present deal: sessions with the same key deal alike."""
        return self._key

    def samples(self, device: int) -> np.ndarray:
        """Return the indices of a device's training samples."""
        return self._samples[device]

    def labels(self, devices: Sequence[int]) -> list[int]:
        """Return the labels of all samples that these devices hold, ascending; empty if they hold none."""
        labels = [self._labels[self._samples[device]] for device in devices]
        return np.unique(np.concatenate(labels)).tolist() if labels else []

    def sizes(self, devices: Iterable[int]) -> dict[int, int]:
        """Return the number of samples of each of these devices, in order of id."""
        return {device: len(self._samples[device]) for device in sorted(devices)}
