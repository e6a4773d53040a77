"""The training samples that each device holds, session by session."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from edgefl.config.answers import wrong
from edgefl.errors import about
from edgefl.learning.data.tested_labels import TestedLabels
from edgefl.learning.partitions import Partition, PartitionInputs
from edgefl.rng import Streams


class DeviceData:
    """The training samples that a partition deals to devices, once or, if the partition requires it, in each session.

    Several populations keep their data: if the partition deals samples again in each session, population g
    permanently has the samples of session g. (A partition that deals only once deals to all devices together.)

    Args:
        labels: labels of the training data [samples].
        devices: number of devices of the run, present or not.
        inputs: the devices' positions and the samples' groups, for partitions that need them.
        populations: device ids of each population, ascending; with at most one population, all devices belong to it.
        tested: labels of samples on which models are tested; a session without any of these labels is an error.

    Raises:
        EdgeflError: the partition cannot divide these data, or models of a session could not be tested.
    """

    def __init__(
        self,
        partition: Partition,
        labels: np.ndarray,
        devices: int,
        streams: Streams,
        inputs: PartitionInputs,
        populations: Sequence[range] = (),
        tested: Sequence[TestedLabels] = (),
    ) -> None:
        self._tested = tested
        self._partition = partition
        self._labels = labels
        self._devices = devices
        self._streams = streams
        self._facts = inputs
        self._populations = [] if partition.stands or len(populations) < 2 else populations
        self._key = -1
        self._samples: list[np.ndarray] = []
        with about("learning", "partition"):
            self.deal(1)  # raise errors before the run writes files

    def deal(self, session: int) -> None:
        """Deal the samples of a session to the devices."""
        key = 0 if self._populations else self._partition.key(session)
        if self._key != key:
            everybody = range(self._devices)
            turns = enumerate(self._populations, start=1) if self._populations else [(session, everybody)]
            dealt = [samples for turn, ids in turns for samples in self._dealt(turn, ids)]
            if self._facts.kept is not None:
                dealt = [
                    self._some(samples, max(1, round(self._facts.kept[device] * len(samples))), device, key)
                    for device, samples in enumerate(dealt)
                ]
            self._samples = dealt
            self._key = key

    def _some(self, samples: np.ndarray, number: int, device: int, key: int) -> np.ndarray:
        """Draw `number` of a device's dealt samples at random: the samples that the device keeps."""
        if number == len(samples):
            return samples
        order = self._streams("samples kept", key, device).permutation(len(samples))
        return np.sort(samples[order[:number]])

    def _dealt(self, session: int, ids: range) -> list[np.ndarray]:
        """Deal all samples of a session to the given devices only."""
        inputs = self._facts
        if inputs.positions_m is not None:
            inputs = replace(inputs, positions_m=inputs.positions_m[ids.start : ids.stop])
        assign, devices = self._partition.assign, len(ids)
        dealt = assign(self._labels, devices, session, self._streams, inputs)
        known = len(self._labels)
        if not (
            isinstance(dealt, list) and len(dealt) == devices and all(_valid(one, known) for one in dealt)
        ):
            wanted = (
                f"a list of {devices} arrays, the indices of each device's samples, from 0 to {known - 1:,}"
            )
            raise wrong(assign, dealt, wanted)
        every = np.concatenate([np.empty(0, np.int64), *dealt]).astype(np.int64)
        if np.bincount(every).max(initial=0) > 1:
            raise wrong(assign, dealt, f"each sample once: of {devices} devices, some hold the same sample")
        if self._tested and len(every):
            held = np.unique(self._labels[every]).tolist()
            for one in self._tested:
                one.require(held)
        return dealt

    def untested(self) -> list[str]:
        """Return notes on test samples that no session tests, since no training sample has their label."""
        return [note for one in self._tested if (note := one.untested(self._labels))]

    @property
    def key(self) -> int:
        """The key of the current deal; devices hold the same samples as long as the key is the same."""
        return self._key

    def bring(self, devices: Sequence[int]) -> None:
        """Load the samples of these devices for training; here do nothing, since all samples are in memory."""

    def samples(self, device: int) -> np.ndarray:
        """Return the indices of a device's training samples."""
        return self._samples[device]

    def labels(self, devices: Collection[int]) -> list[int]:
        """Return the labels of these devices' samples, ascending; [] if the devices have no samples."""
        labels = [self._labels[self._samples[device]] for device in devices]
        return np.unique(np.concatenate(labels)).tolist() if labels else []

    def mix(self, devices: Sequence[int]) -> dict[int, int]:
        """Return the total number of these devices' samples of each label."""
        held = np.concatenate([self._labels[self._samples[device]] for device in devices])
        labels, counts = np.unique(held, return_counts=True)
        return dict(zip(labels.tolist(), counts.tolist(), strict=True))

    def sizes(self, devices: Collection[int]) -> Mapping[int, int]:
        """Return the number of samples of each of these devices, in order of id."""
        return {device: len(self._samples[device]) for device in sorted(devices)}


def _valid(samples: object, known: int) -> bool:
    if not (isinstance(samples, np.ndarray) and samples.ndim == 1 and samples.dtype.kind in "iu"):
        return False
    return not len(samples) or bool(samples.min() >= 0 and samples.max() < known)
