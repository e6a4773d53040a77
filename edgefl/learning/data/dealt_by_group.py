"""Give each device a group of the data set; the group's samples are generated when the device takes part."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from edgefl.errors import EdgeflError, about
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.data.tested_labels import TestedLabels
from edgefl.learning.datasets import SamplesByGroup
from edgefl.learning.partitions import Partition, PartitionInputs
from edgefl.rng import Streams

if TYPE_CHECKING:
    from edgefl.learning.data.sample_pool import SamplePool


class DealtByGroup(DeviceData):
    """The data of devices that hold one group each; a round loads its devices' samples in place of earlier samples.

    A session's devices are assumed to have all labels, because looking up their labels would generate all devices'
    samples.

    Args:
        pool: the samples, or None if there is no training and only sizes are needed.
        kept: [devices] share of each device's samples that the device keeps; None: devices keep all samples.
    """

    def __init__(
        self,
        partition: Partition,
        by_group: SamplesByGroup,
        classes: int,
        devices: int,
        streams: Streams,
        pool: "SamplePool | None" = None,
        kept: np.ndarray | None = None,
    ) -> None:
        with about("learning", "partition"):
            groups = partition.groups_of(by_group.sizes, devices, streams)
            if groups is None:
                raise EdgeflError(
                    "this data set generates the samples of a group when its device takes part, but here a "
                    "device holds samples of several groups: use the partition natural, or a data set in "
                    "memory (synthetic without test_groups, huggingface without on_demand)"
                )
        self._groups = groups
        self._by_group, self._classes, self._pool = by_group, classes, pool
        self._streams = streams
        held = by_group.sizes[groups]
        if kept is not None:
            held = np.maximum(1, np.rint(kept * held).astype(np.int64))
        self._held = held

    def deal(self, session: int) -> None:
        """Do nothing, since each device keeps its group of samples in all sessions."""

    def untested(self) -> list[str]:
        return []  # a session is tested on all labels

    @property
    def key(self) -> int:
        return 0

    def bring(self, devices: Sequence[int]) -> None:
        assert self._pool is not None  # training needs a pool
        self._pool.bring(self._groups[list(devices)].tolist())

    def samples(self, device: int) -> np.ndarray:
        assert self._pool is not None
        return self._of_device(device, self._pool.rows(int(self._groups[device])))

    def labels(self, devices: Collection[int]) -> list[int]:
        return list(range(self._classes)) if len(devices) else []

    def mix(self, devices: Sequence[int]) -> dict[int, int]:
        counts = np.zeros(self._classes, dtype=np.int64)
        for device in devices:
            y = self._by_group.of(int(self._groups[device])).y
            counts += np.bincount(y[self._of_device(device, np.arange(len(y)))], minlength=self._classes)
        return {label: count for label, count in enumerate(counts.tolist()) if count}

    def sizes(self, devices: Collection[int]) -> Mapping[int, int]:
        return _SizesOf(self._held, devices)

    def _of_device(self, device: int, rows: np.ndarray) -> np.ndarray:
        """Return the indices of the samples that a device keeps from its group."""
        return self._some(rows, int(self._held[device]), device, self.key)


class _SizesOf(Mapping[int, int]):
    """A mapping from devices, in order of id, to their numbers of samples, without a Python object per device.

    Args:
        held: how many samples each device holds, [devices].
    """

    def __init__(self, held: np.ndarray, devices: Collection[int]) -> None:
        self._held, self._devices = held, devices

    def __getitem__(self, device: int) -> int:
        return int(self._held[device])

    def __len__(self) -> int:
        return len(self._devices)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._devices))

    def total(self) -> int:
        """Return the total number of samples of these devices."""
        return int(self._held[np.fromiter(self._devices, np.int64, len(self._devices))].sum())


def total(sizes: Mapping[int, int]) -> int:
    """Return the total number of samples of all devices in a mapping."""
    return sizes.total() if isinstance(sizes, _SizesOf) else sum(sizes.values())


def device_data_of(
    partition: Partition,
    labels: np.ndarray,
    by_group: SamplesByGroup | None,
    classes: int,
    devices: int,
    streams: Streams,
    inputs: PartitionInputs,
    populations: Sequence[range] = (),
    pool: "SamplePool | None" = None,
    tested: Sequence[TestedLabels] = (),
) -> DeviceData:
    """Deal all training samples to devices together, or one group per device if samples are generated on demand."""
    if by_group is not None:
        return DealtByGroup(partition, by_group, classes, devices, streams, pool, inputs.kept)
    return DeviceData(partition, labels, devices, streams, inputs, populations, tested)
