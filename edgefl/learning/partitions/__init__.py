"""Partitions, which divide the training samples among devices, session by session."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from edgefl.config.component import Component
from edgefl.errors import EdgeflError
from edgefl.rng import Streams

__all__ = ["NO_INPUTS", "Partition", "PartitionInputs", "Staying", "by_device"]


@dataclass(frozen=True)
class PartitionInputs:
    """Facts about samples and devices that some partitions need besides labels, or None if unknown.

    groups: origin of each training sample (`Split.groups`), [n] int64.
    positions_m: positions of the devices at time 0, in m, [N, 2].
    sites_m: positions of the base stations, in m, [cells, 2].
    kept: share of the samples dealt to each device that the device keeps, [N]; None: devices keep all samples.
    """

    groups: np.ndarray | None = None
    positions_m: np.ndarray | None = None
    sites_m: np.ndarray | None = None
    kept: np.ndarray | None = None

    def home_sites(self) -> np.ndarray | None:
        """Return the base station nearest to each device at time 0, [N], or None if positions are unknown."""
        if self.positions_m is None or self.sites_m is None:
            return None
        apart = self.positions_m[:, None] - self.sites_m
        return np.hypot(apart[..., 0], apart[..., 1]).argmin(1)


NO_INPUTS = PartitionInputs()


class Partition(Component):
    """Base class of all partitions.

    Sessions are counted from 1. A partition only deals training samples; a session is tested on all test data of its
    labels.
    """

    @abstractmethod
    def session_labels(self, session: int, num_classes: int, streams: Streams) -> np.ndarray:
        """Return the sorted int64 labels that are available in a session.

        Raises:
            EdgeflError: the parameters do not fit this number of classes.
        """

    @abstractmethod
    def assign(
        self,
        labels: np.ndarray,
        devices: int,
        session: int,
        streams: Streams,
        inputs: PartitionInputs = NO_INPUTS,
    ) -> list[np.ndarray]:
        """Deal the samples of a session's labels to all devices of the population, present or not.

        Args:
            labels: labels of the training samples, [n] int64; C = max + 1.
            devices: the number of devices N, at least 1.
            inputs: facts about samples and devices; most partitions need none.

        Returns:
            A sorted int64 array of indices into `labels` per device; no array is empty, and no index occurs twice.

        Raises:
            EdgeflError: there are too many devices for the samples, or `inputs` lacks a required fact.
        """

    @abstractmethod
    def key(self, session: int) -> int:
        """Return the key of a session's draw; for equal keys `assign` returns equal arrays.

        If the key changes, devices have new data, and discard all vectors kept from the earlier data.
        """

    def groups_of(self, sizes: np.ndarray, devices: int, streams: Streams) -> np.ndarray | None:
        """Return the group of samples that each device holds [devices], or None if devices do not hold whole groups.

        If samples are generated group by group on demand, this method is called instead of `assign`.

        Args:
            sizes: number of training samples of each group, [groups].

        Raises:
            EdgeflError: there are more devices than groups.
        """
        return None

    @property
    def turns(self) -> int:
        """The number of sessions, counted from the first, after which every set of labels has appeared."""
        return 2

    @property
    def stands(self) -> bool:
        """Whether devices keep their samples through all sessions."""
        return self.key(1) == self.key(2)


class Staying(Partition):
    """Base class of partitions that deal all labels once; samples follow their device through all sessions.

    The labels of a session depend on the devices that are present.
    """

    def key(self, session: int) -> int:
        return 0

    def session_labels(self, session: int, num_classes: int, streams: Streams) -> np.ndarray:
        return np.arange(num_classes)

    def assign(
        self,
        labels: np.ndarray,
        devices: int,
        session: int,
        streams: Streams,
        inputs: PartitionInputs = NO_INPUTS,
    ) -> list[np.ndarray]:
        owner = self.owners(labels, devices, streams, inputs)
        counts = np.bincount(owner[owner >= 0], minlength=devices)
        if empty := np.flatnonzero(counts == 0).tolist():
            raise EdgeflError(
                f"{len(empty)} of {devices} devices would hold no samples, such as device {empty[0]}: take fewer"
                " devices or a larger data set"
            )
        given = np.flatnonzero(owner >= 0)
        return by_device(given, owner[given], devices)

    def owners(
        self, labels: np.ndarray, devices: int, streams: Streams, inputs: PartitionInputs
    ) -> np.ndarray:
        """Return the device that holds each sample [n], or -1 for unused samples; arguments as for `assign`."""
        raise NotImplementedError


def by_device(samples: np.ndarray, owner: np.ndarray, devices: int) -> list[np.ndarray]:
    """Group samples [n] by owner [n], a device from 0 to devices - 1; return one array per device, in order."""
    # convert to short integers, which NumPy sorts five times as fast
    order = np.argsort(owner.astype(np.uint16) if devices <= 1 << 16 else owner, kind="stable")
    ends = np.cumsum(np.bincount(owner, minlength=devices))
    return np.split(samples[order], ends[:-1])
