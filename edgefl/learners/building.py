"""Build the learners of a run: PyTorch learners with data and models, or stand-ins that train nothing."""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edgefl.config import registry
from edgefl.contract import Learner
from edgefl.engine.federation.untrained import Untrained
from edgefl.errors import EdgeflError
from edgefl.learners import own as outside_learners
from edgefl.learners.numbered import NumberedLearner
from edgefl.learning import memory
from edgefl.learning.kernels import numba_name
from edgefl.learning.settings import LearningSettings
from edgefl.run_directory.score import ACCURACY
from edgefl.run_directory.snapshot import Snapshotable, TrainingParts
from edgefl.scenario import memory_needs
from edgefl.scenario.members import Members, members_of
from edgefl.scenario.world import World

if TYPE_CHECKING:  # a run without learning must not load PyTorch
    import torch

    from edgefl.learning.datasets import Data, Dataset
    from edgefl.learning.federation.training_data import TrainingData

# PyTorch's own threads stay off: small layers are faster on one thread, and on a busy machine the OpenMP barriers of
# two threads slowed logistic regression 17-fold. The cores train devices in parallel, or run a study's processes.
THREADS_PER_OPERATION = 1
_GPUS = ("nvidia[0-9]*", "nvhost-gpu", "kfd", "dxg")  # device files: NVIDIA, NVIDIA's boards, AMD, WSL

# federation, or an empty name -> cell -> its learner
Learners = Mapping[str, Mapping[int, Any]]


@dataclass(frozen=True)
class Training:
    """The training of a run: its state, its torch device and facts about it; a run without training keeps no journal.

    further: facts for run.json that only some runs have. cells: learners that train with PyTorch, by federation and
    cell. score: name of the models' score. needs: lower bounds of the memory that training needs. precisions:
    precisions of the gradients. processor: name of the processor.
    """

    state: TrainingParts
    torch_device: "torch.device"
    further: Mapping[str, str] = field(default_factory=dict)
    cells: Learners = field(default_factory=dict)
    score: str = ACCURACY
    needs: Sequence[memory.Need] = ()
    precisions: frozenset[str] = frozenset()
    processor: str = "cpu"


# learners of one federation by cell, run.json's entries on model and machine, and the training, if any
Built = tuple[dict[int, Any], dict[str, Any], Training | None]


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def may_have_gpu() -> bool:
    """Return whether PyTorch may find a `cuda` GPU, without loading PyTorch."""
    if sys.platform != "linux":
        return sys.platform != "darwin"
    return any(path for name in _GPUS for path in Path("/dev").glob(name))


def torch_device(name: str) -> "torch.device":
    """Return the torch device named by `auto`, `cpu`, `cuda`, `cuda:N` or `mps`; `auto` prefers `cuda` to `cpu`.

    Raises:
        EdgeflError: the name is unknown, or this machine has no such device.
    """
    _check_name(name)
    import torch

    kind, colon, number = name.partition(":")
    if name == "mps":
        if not torch.backends.mps.is_available():
            raise EdgeflError("--device mps: PyTorch finds no Apple GPU here; use --device cpu or auto")
        return torch.device("mps")
    available = torch.cuda.is_available()
    if kind == "cuda" and not available:
        raise EdgeflError(f"--device {name}: PyTorch finds no CUDA device here; use --device cpu or auto")
    if colon and int(number) >= (count := torch.cuda.device_count()):
        last = f" to cuda:{count - 1}" if count > 1 else ""
        raise EdgeflError(f"--device {name}: this machine has cuda:0{last}; choose one of these")
    return torch.device(name if colon else "cuda" if available and kind != "cpu" else "cpu")


def _check_name(device: str) -> None:
    if not re.fullmatch(r"auto|cpu|mps|cuda(:\d+)?", device):
        raise EdgeflError(f"--device {device}: choose auto, cpu, cuda, cuda:N or mps")


@dataclass(frozen=True)
class Means:
    """The means of building learners: the torch device, the number of threads, and the function that loads data."""

    device: str
    threads: int
    load: "Callable[[Dataset], Data] | None"

    def __post_init__(self) -> None:
        _check_name(self.device)  # do not look for the device, since a run may train nothing


def build(
    world: World,
    means: Means,
    sizes: Mapping[str, Mapping[int, Any] | None],
    outside: outside_learners.Maker | Learner | None = None,
) -> tuple[Learners, dict[str, Any], Training | None]:
    """Build a learner for each server; also return run.json's entries about model and machine, and the `Training`.

    Args:
        sizes: federation (or an empty name) -> stand-ins for its learners, or None to build its learners.

    Returns:
        Federation (or an empty name) -> learners by cell; entries of run.json; the training, or None.

    Raises:
        EdgeflError: the data, the model or the processor is unavailable.
    """
    if outside is not None:
        if world.alone is None:
            raise EdgeflError(
                "an external learner requires one federation per cell, but here several federations share the "
                "cells: remove federations, or do not use an external learner",
                ("federations",),
            )
        made, said = outside_learners.build(world, outside)
        state = outside_learners.training_of(made)
        further = {"learner": said["learner"]["name"]}
        return {"": made}, said, Training(state, torch_device("cpu"), further) if state else None
    several: dict[str, Built] = {}
    before: list[memory.Need] = []
    for name, one in world.by_federation.items():
        with one.sections.naming_places():
            several[name] = _of_one(one, means, sizes[name], before)
        training = several[name][2]
        before += [replace(need, place=("federations", name)) for need in training.needs] if training else []
    return _together(several)


def _of_one(
    world: World, means: Means, sizes: Mapping[int, Any] | None, before: Sequence[memory.Need]
) -> Built:
    """Build the learners of one federation, or stand-ins that train nothing.

    Args:
        before: memory needs of the learners already built for other federations.
    """
    learning, workload, training = world.sections.learning, world.sections.workload, None
    if workload is not None:
        task = workload.model_dump()
        learners: dict[int, Any] = {cell: Untrained(**task) for cell in world.served}
        about: dict[str, Any] = {"name": None, "parameters": None}
    else:
        learners = dict(sizes or {})
        if not learners:
            learners, training = _torch_learners(world, means, before)
        assert learning is not None  # the schema requires one of the two
        about = {
            "name": registry.name_of("models", learning.model),
            "parameters": next(iter(learners.values())).parameters,
        }
    first = next(iter(learners.values()))
    about |= {"payload_bits": first.payload_bits, "flops_per_sample": first.flops_per_sample}
    said = {"device": training.processor if training else "cpu", "model": about}
    if training is not None and "learning.kernels" in training.further:
        said["kernels"] = training.further["learning.kernels"]
    if training is not None and (score := training.score) != ACCURACY:
        said["score"] = score
    return learners, said, training


def _torch_learners(
    world: World, means: Means, before: Sequence[memory.Need]
) -> tuple[dict[int, Any], Training]:
    """Build a PyTorch learner for each cell with a server, and the `Training` of the run."""
    import torch

    from edgefl.learning.federation.cloud_stage import below_a_cloud
    from edgefl.learning.federation.training_data import TrainingData
    from edgefl.learning.local.cost import size
    from edgefl.learning.local.processor import repeat_on_gpus

    repeat_on_gpus()
    torch.set_num_threads(THREADS_PER_OPERATION)
    trained_on = torch_device(means.device)
    settings, members = world.sections.learning, members_of(world)
    assert settings is not None
    training_data = TrainingData(
        settings,
        trained_on,
        devices=members.count,
        ids=None if members.ids is None else members.ids.tolist(),
        threads=means.threads,
        load=means.load,
    )
    numbers = size(settings.model, training_data.inputs.shape, training_data.classes)
    needs = memory_needs.of_training(world, numbers)
    card = torch.cuda.get_device_properties(trained_on) if trained_on.type == "cuda" else None
    memory.require([*before, *needs], card.total_memory if card else memory.available_bytes())
    learners = _of_cells(world, members, settings, training_data)
    parts: dict[str, Snapshotable] = {"devices": training_data.devices}
    parts |= {f"cell {cell}": learner for cell, learner in learners.items()}
    if world.sections.cloud is not None:
        parts["cloud"] = below_a_cloud(learners.values(), trained_on)
    training = Training(
        TrainingParts(parts),
        trained_on,
        _further(settings),
        {"": learners},
        training_data.task.score,
        needs,
        frozenset({settings.local.precision}),
        card.name if card else "cpu",
    )
    if members.ids is not None:
        return {cell: NumberedLearner(one, members.ids) for cell, one in learners.items()}, training
    return learners, training


def _of_cells(
    world: World, members: Members, settings: LearningSettings, training_data: "TrainingData"
) -> dict[int, Any]:
    """Build the PyTorch learner of each cell that has a server."""
    from edgefl.learning.federation.learner import TorchLearner

    return {
        cell: TorchLearner(
            settings,
            training_data,
            streams=world.streams,
            homes_m=members.homes_m,
            sites_m=world.cells_m,
            cell=cell,
            populations=members.populations,
            kept=members.kept,
        )
        for cell in world.served
    }


def _further(settings: LearningSettings) -> dict[str, str]:
    """Return what training depends on besides scenario, data and code: hashes of files, and numba's version."""
    further = {}
    if settings.initial is not None:
        further["learning.initial"] = hashlib.sha256(settings.initial.path.read_bytes()).hexdigest()
    if settings.kernels == "numba":
        further["learning.kernels"] = numba_name()
    return further


def notes_at_start(training: Training | None) -> list[str]:
    """Return notes on a run's training that the user should read before the run begins."""
    if training is None or training.torch_device.type != "cpu" or "bf16" not in training.precisions:
        return []
    from edgefl.learning.local.processor import bf16_note

    note = bf16_note()
    return [note] if note else []


def _together(several: Mapping[str, Built]) -> tuple[Learners, dict[str, Any], Training | None]:
    """Combine the learners and the training of a run's federations; run.json keeps each federation's entries."""
    learners = {name: own for name, (own, _, _) in several.items()}
    if set(several) == {""}:
        return learners, *several[""][1:]
    trained = {name: training for name, (_, _, training) in several.items() if training is not None}
    said: dict[str, Any] = {
        "device": next((several[name][1]["device"] for name in trained), "cpu"),
        "model": {"name": None, "parameters": None},
        "federations": {
            name: {key: value for key, value in own.items() if key != "device"}
            for name, (_, own, _) in several.items()
        },
    }
    if not trained:
        return learners, said, None
    parts: dict[str, Snapshotable] = {
        f"{part} of {name}": own
        for name, training in trained.items()
        for part, own in training.state.parts.items()
    }
    further = {
        f"{key} of {name}": content
        for name, training in trained.items()
        for key, content in training.further.items()
    }
    cells = {name: training.cells[""] for name, training in trained.items()}
    where = next(iter(trained.values())).torch_device
    precisions = frozenset().union(*(training.precisions for training in trained.values()))
    return learners, said, Training(TrainingParts(parts), where, further, cells, precisions=precisions)
