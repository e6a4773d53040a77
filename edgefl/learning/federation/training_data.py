"""The data set that the learners of all cells train on, and the vectors that devices keep between rounds."""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter

import numpy as np
import torch
from torch import Tensor

from edgefl.errors import EdgeflError, about
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.data.sample_pool import SamplePool
from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets import Data, Dataset, Split
from edgefl.learning.federation.drifting import both_concepts
from edgefl.learning.finite import require_finite
from edgefl.learning.hands import Hands
from edgefl.learning.modules.model_files import Inputs
from edgefl.learning.objective import task_of
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.device_states import DeviceStates


class TrainingData:
    """The data set on the torch device, and the vectors that devices keep between rounds.

    Args:
        devices: all devices of the run, present or not.
        ids: what each is called outside; None: by its number.
        threads: of local training and tests on a CPU; results do not depend on it.
        load: reads the data set; None: its own `load`.
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
        self.inputs = Inputs(
            data.train.x.shape[1:],
            data.mean.tolist(),
            data.std.tolist(),
            tuple(data.label_names),
            *self.task.scaling(),
        )
        self.labels = self.task.kinds(data.train.y)
        self.groups = data.train.groups
        self.input_shape: tuple[int, ...] = data.train.x.shape[1:]
        self.torch_device = torch_device
        self.threads = threads
        self.model = settings.model
        self.hands = Hands(1 if torch_device.type == "cuda" else threads)
        self.devices, self.ids = devices, range(devices) if ids is None else ids
        augmentation = Augmentation() if settings.local.augmentation else None
        if augmentation is not None:
            augmentation.check(self.input_shape)
        self.train = self._in_memory(settings, data, data.train, augmentation)
        self.pool = None if data.by_group is None else SamplePool(data.by_group, self.train, threads)
        self.test = self._in_memory(settings, data, data.test)
        self.validation = None if validation is None else self._in_memory(settings, data, validation)
        self.test_split, self.validation_split = data.test, validation
        # shared by all cells: a device that changes the cell takes its own vectors along
        self.states = self.new_states()
        self._cell_of = np.full(devices, -1)  # the last in whose session it was; -1: none

    def serve(self, cell: int, ids: Iterable[int]) -> None:
        """Note that these devices are in a session of this cell now."""
        self._cell_of[list(ids)] = cell

    def from_elsewhere(self, cell: int, ids: Iterable[int]) -> set[int]:
        """Return which of these devices have last been in another cell's session."""
        return {id_ for id_ in ids if self._cell_of[id_] not in (cell, -1)}

    def last_in(self, cell: int) -> list[int]:
        """Return the devices whose last session was this cell's, sorted."""
        return np.flatnonzero(self._cell_of == cell).tolist()

    def _in_memory(
        self, settings: LearningSettings, data: Data, split: Split, augmentation: Augmentation | None = None
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
        )

    def new_states(self) -> DeviceStates:
        """Make an empty store for vectors of all devices."""
        return DeviceStates(self.devices, self.torch_device)

    def state(self) -> tuple[dict[str, Tensor], dict[str, object]]:
        """Return the vectors that devices keep, for a snapshot."""
        return self.states.tensors(), {"cell_of": self._cell_of.tolist()}

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, object]) -> None:
        """Replace the vectors that devices keep by what `state` gave."""
        self.states.restore(tensors)
        self._cell_of = np.array(facts["cell_of"])


def _refuse_what_needs_all(settings: LearningSettings) -> None:
    """Refuse what would look at the training samples of all devices, where they are made on demand."""
    for key in ("drift", "evaluation.validation", "evaluation.tested_on", "theory"):
        if attrgetter(key)(settings) not in (None, "labels"):
            raise EdgeflError(
                f"learning.{key} needs the samples of all devices, and this data set makes those of a device when it"
                " takes part: leave it out, or take a data set in memory (synthetic without test_groups,"
                " huggingface without on_demand)",
                ("learning", *key.split(".")),
            )
