"""The size of a learner, which is what the checks before a run ask of it, without loading PyTorch.

Loading PyTorch takes longer than everything else that `edgefl validate` does. Where a model writes out its size
and nothing else of the learning has to be tried with tensors, data and partition are built as in a run, and the
model is known by its formula; a conformance test holds formula and module together.
"""

from collections.abc import Callable
from dataclasses import dataclass

from edgefl.errors import about
from edgefl.learners.building import may_have_gpu
from edgefl.learning import memory
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.dealt_by_group import device_data_of
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.objective import task_of
from edgefl.learning.partitions import PartitionInputs
from edgefl.learning.settings import LearningSettings
from edgefl.learning.updates.payload import Payload
from edgefl.scenario import memory_needs
from edgefl.scenario.members import members_of
from edgefl.scenario.world import World


@dataclass(frozen=True)
class _SizedLearner:
    """The data and the size of a learner, known without building its model."""

    device_data: DeviceData
    payload_bits: int
    flops_per_sample: float
    parameters: int


def of(
    world: World, device: str, load: Callable[[Dataset], Data] | None = None
) -> dict[int, _SizedLearner] | None:
    """Return the learner of each cell by its size; None: that needs PyTorch, or nothing is trained.

    Args:
        world: of one federation.
        device: as in `simulate`.
        load: reads the data set; None: its own `load`.

    Raises:
        EdgeflError: the same as where a run begins; it names the key.
    """
    settings = world.scenario.learning
    if settings is None or not _is_enough(settings, device):
        return None
    one = _sized(settings, world, load)
    return dict.fromkeys(world.served, one) if one else None  # all cells deal alike


def _is_enough(settings: LearningSettings, device: str) -> bool:
    """Whether nothing of this learning has to be tried with tensors, but for a model that states its size.

    Left to PyTorch: a GPU, whose memory counts; bfloat16, which the processor must know; drifts and tests of
    devices, which change or divide the test data; a file that has to fit the model.
    """
    return (
        (device == "cpu" or (device == "auto" and not may_have_gpu()))
        and settings.local.precision == "float32"
        and settings.evaluation.tested_on == "labels"
        and settings.drift is None
        and settings.initial is None
    )


def _sized(
    settings: LearningSettings, world: World, load: Callable[[Dataset], Data] | None
) -> _SizedLearner | None:
    with about("learning", "dataset"):
        data = load(settings.dataset) if load else settings.dataset.load()
    task = task_of(settings, data)
    if task.per_position:
        return None  # what the model's outputs are is seen by making it
    data, _ = split_off(data, settings.evaluation.validation, task.kinds(data.train.y))
    if settings.local.augmentation:
        Augmentation().check(data.train.x.shape[1:])
    size = settings.model.size(data.train.x.shape[1:], data.num_classes)
    if size is None:
        return None
    members = members_of(world)
    numbers = memory_needs.of_training(world.scenario, members.count, size.parameters)
    memory.require(numbers, memory.available_bytes())
    inputs = PartitionInputs(data.train.groups, members.homes_m, world.cells_m, members.kept)
    payload = Payload(settings.cost.bits_per_parameter, settings.cost.payload == "exchanged")
    flops = settings.cost.flops_per_sample
    return _SizedLearner(
        device_data_of(
            settings.partition,
            task.kinds(data.train.y),
            data.by_group,
            data.num_classes,
            members.count,
            world.streams,
            inputs,
            members.populations,
        ),
        payload.bits(size.parameters, 0, settings.algorithm.vectors_up),
        float(size.flops_per_sample) if flops == "counted" else flops,
        size.parameters,
    )
