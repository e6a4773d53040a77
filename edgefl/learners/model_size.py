"""Compute the size of a learner for the checks before a run, without loading PyTorch.

Loading PyTorch takes longer than all other work of `edgefl validate`. Loading is unnecessary if the model states its
size, and no other setting of `learning` must be checked with tensors: the data and the partition are then built as in
a run, and the model's size comes from its formula. A conformance test checks the formula against the module.
"""

from collections.abc import Callable
from dataclasses import dataclass

from edgefl.errors import about
from edgefl.learners.building import may_have_gpu
from edgefl.learning import memory
from edgefl.learning.augmentation import Augmentation
from edgefl.learning.data.dealt_by_group import device_data_of
from edgefl.learning.data.device_data import DeviceData
from edgefl.learning.data.tested_labels import doubts, tested_labels
from edgefl.learning.data.validation import split_off
from edgefl.learning.datasets import Data, Dataset
from edgefl.learning.objective import task_of
from edgefl.learning.partitions import PartitionInputs
from edgefl.learning.settings import LearningSettings
from edgefl.scenario import memory_needs
from edgefl.scenario.members import members_of
from edgefl.scenario.world import World


@dataclass(frozen=True)
class _SizedLearner:
    """A stand-in for a learner that knows its devices' data, its payload and FLOPs, but has no model."""

    device_data: DeviceData
    payload_bits: int
    flops_per_sample: float
    parameters: int
    doubts: tuple[str, ...] = ()


def of(
    world: World, device: str, load: Callable[[Dataset], Data] | None = None
) -> dict[int, _SizedLearner] | None:
    """Return a stand-in with the size of each cell's learner, or None if PyTorch is needed, or nothing is trained.

    Args:
        world: the world of one federation.
        device: name of the torch device, as in `simulate`.
        load: function that reads the data set; by default the data set's own `load`.
    """
    settings = world.sections.learning
    if settings is None or not _is_enough(settings, device):
        return None
    one = _sized(settings, world, load)
    return dict.fromkeys(world.served, one) if one else None  # devices get the same samples in all cells


def _is_enough(settings: LearningSettings, device: str) -> bool:
    """Return whether learning settings can be checked without tensors, given a model that states its size.

    The following can be checked only after the learner is built: a GPU, whose memory is limited; bfloat16, which the
    processor must support; numba, which must be installed; drifts and tests on devices, which change or divide the
    test data; and model files, which must fit the model.
    """
    return (
        (device == "cpu" or (device == "auto" and not may_have_gpu()))
        and settings.local.precision == "float32"
        and settings.kernels == "torch"
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
        return None  # the model's outputs are only known once it is built
    data, validation = split_off(data, settings.evaluation.validation, task.kinds(data.train.y))
    if settings.local.augmentation:
        Augmentation().check(data.train.x.shape[1:])
    size = settings.model.size(data.train.x.shape[1:], data.num_classes)
    if size is None:
        return None
    members = members_of(world)
    memory.require(memory_needs.of_training(world, size.parameters), memory.available_bytes())
    inputs = PartitionInputs(data.train.groups, members.homes_m, world.cells_m, members.kept)
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
            tested=tested_labels(settings.evaluation, task, data, validation),
        ),
        settings.cost.bits(size.parameters, 0, settings.algorithm.vectors_up),
        float(size.flops_per_sample) if flops == "counted" else flops,
        size.parameters,
        tuple(doubts(data)),
    )
