"""Partitions: which device holds which training samples, session by session."""

from abc import abstractmethod

import numpy as np

from edgefl.component import Component
from edgefl.rng import Streams


class Partition(Component):
    """Base of all partitions.

    Sessions count from 1. A partition only deals out training samples: a session is tested on the whole
    test data of its labels.
    """

    @abstractmethod
    def session_labels(self, session: int, num_classes: int, streams: Streams) -> np.ndarray:
        """Sorted int64 labels that are available in a session.

        Raises:
            EdgeflError: the parameters do not fit this number of classes.
        """

    @abstractmethod
    def assign(self, labels: np.ndarray, devices: int, session: int, streams: Streams) -> list[np.ndarray]:
        """Deal the samples of a session's labels out to all devices of the population, present or not.

        Args:
            labels: [n] int64 labels of the training samples; every class occurs, so C = max + 1.
            devices: N, at least 1.

        Returns:
            N sorted int64 arrays of indices into `labels`, none empty, no index twice.

        Raises:
            EdgeflError: more devices than samples can serve.
        """

    @abstractmethod
    def key(self, session: int) -> int:
        """Names the draw that a session uses: with equal keys `assign` returns equal arrays."""


def by_device(samples: np.ndarray, owner: np.ndarray, devices: int) -> list[np.ndarray]:
    """Group samples [n] by their owner [n] (0 to devices-1): one array per device, in the order given."""
    order = np.argsort(owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=devices))
    return np.split(samples[order], ends[:-1])
