"""The training and test data that the learners of all cells share."""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter

import torch

from edgefl.errors import EdgeflError, about
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.data.dealt_by_group import device_data_of
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.data.sample_pool import SamplePool
from edgefl.learning.data.tested_labels import TestedLabels, doubts, tested_labels
from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.federation.drifting import both_concepts
from edgefl.learning.finite import require_finite
from edgefl.learning.modules.model_files import Inputs
from edgefl.learning.objective import task_of
from edgefl.learning.partitions import Partition, PartitionInputs
from edgefl.learning.settings import LearningSettings
from edgefl.learning.thread_pool import ThreadPool
from edgefl.learning.updates.device_states import RunDevices
from edgefl.rng import Streams

CHANNELS = (1, 3)  # numbers of channels of grey and of colour images


class TrainingData:
    """The data set on the torch device, and the devices that hold its samples.

    Args:
        devices, ids: number and ids of the run's devices, as in `RunDevices`.
        threads: number of threads for local training and tests on a CPU; results do not depend on it.
        load: function that reads the data set; by default the data set's own `load`.

    Attributes:
        notes: notes on the data that the user should read before the run begins.
    """

    def __init__(
        self,
        settings: LearningSettings,
        torch_device: torch.device,
        *,
        devices: int,
        ids: Sequence[int] | None = None,
        threads: int = 1,
        load: Callable[[Dataset], Data] | None = None,
    ) -> None:
        dataset: Dataset = settings.dataset
        with about("learning", "dataset"):
            data = load(dataset) if load else dataset.load()
            require_finite(data.train.x, "the training data")
            require_finite(data.test.x, "the test data")
        self.task = task_of(settings, data)
        self.by_group = data.by_group
        if data.by_group is not None:
            _refuse_what_needs_all(settings)
        data, validation = split_off(data, settings.evaluation.validation, self.task.kinds(data.train.y))
        self.classes = data.num_classes
        self.notes = [*doubts(data), *_channels_last(data.train.x.shape)]
        self.inputs = Inputs(
            data.train.x.shape[1:],
            data.mean.tolist(),
            data.std.tolist(),
            tuple(data.label_names),
            *self.task.scaling(),
        )
        self.torch_device = torch_device
        self.threads = threads
        self.model = settings.model
        self.thread_pool = ThreadPool(threads if torch_device.type == "cpu" else 1)
        self.devices = RunDevices(devices, torch_device, ids)
        augmentation = Augmentation() if settings.local.augmentation else None
        if augmentation is not None:
            augmentation.check(self.inputs.shape)
        self.train = self._in_memory(settings, data, data.train, augmentation)
        self.pool = None if data.by_group is None else SamplePool(data.by_group, self.train, threads)
        self._tested = tested_labels(settings.evaluation, self.task, data, validation)
        of = {one.use: one for one in self._tested}
        self.test = self._in_memory(settings, data, data.test, tested=of.get("test"))
        self.validation = None
        if validation is not None:
            self.validation = self._in_memory(settings, data, validation, tested=of.get("validation"))

    def dealt(
        self, partition: Partition, inputs: PartitionInputs, streams: Streams, populations: Sequence[range]
    ) -> DeviceData:
        """Deal the training samples to devices; see `TorchLearner` for `populations`."""
        return device_data_of(
            partition,
            self.train.labels,
            self.by_group,
            self.classes,
            self.devices.count,
            streams,
            inputs,
            populations,
            self.pool,
            self._tested,
        )

    def _in_memory(
        self,
        settings: LearningSettings,
        data: Data,
        split: Split,
        augmentation: Augmentation | None = None,
        tested: TestedLabels | None = None,
    ) -> SplitInMemory:
        kinds = None if self.task.of_classes else self.task.kinds(split.y)
        return SplitInMemory(
            both_concepts(settings.drift, split, data.num_classes),
            data.mean,
            data.std,
            self.torch_device,
            self.task,
            kinds,
            augmentation,
            count=len(split.y),
            tested=tested,
        )


def _channels_last(shape: Sequence[int]) -> Iterator[str]:
    """Note samples [n, height, width, channels], since scaling and models expect the channels first."""
    if len(shape) == 4 and shape[3] in CHANNELS and shape[1] not in CHANNELS:
        yield (
            f"learning.dataset: a sample of {list(shape[1:])} is read as {shape[1]:,} channels of"
            f" {shape[2]:,} x {shape[3]:,} pixels; if it is an image [height, width, channels], write the channels"
            " first: x.transpose(0, 3, 1, 2)"
        )


def _refuse_what_needs_all(settings: LearningSettings) -> None:
    """Refuse settings that need the training samples of all devices if samples are generated on demand."""
    for key in ("drift", "evaluation.validation", "evaluation.tested_on", "theory"):
        if attrgetter(key)(settings) not in (None, "labels"):
            raise EdgeflError(
                f"learning.{key} needs the samples of all devices, but this data set generates a device's "
                "samples only when the device takes part: leave the key out, or use a data set in memory "
                "(synthetic without test_groups, huggingface without on_demand)",
                ("learning", *key.split(".")),
            )
