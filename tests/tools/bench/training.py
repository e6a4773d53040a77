"""Measure local training: a round of many devices against a sequential PyTorch loop in the same run."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local.batching import Batching
from edgefl.learning.local.cost import flops_per_sample
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.processor import has_bf16, repeat_on_gpus
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.mlp2 import Mlp2
from edgefl.learning.models.resnet18 import Resnet18
from edgefl.learning.models.svhn_cnn import SvhnCnn
from edgefl.learning.updates.device_states import DeviceStates
from edgefl.learning.updates.trained_model import TrainedModel
from edgefl.rng import Streams
from tests.tools.bench import interleaved, say
from tests.tools.bench.floor import Speeds, Work

LR, MOMENTUM, MEAN, STD, CLASSES = 0.01, 0.9, 72.9, 90.0, 10
RIVAL = "PyTorch loop, 1 thread"
PEAK_SIZE, PEAK_PRODUCTS = 8192, 20  # size and number of square bfloat16 products that measure a GPU's peak
CPU = torch.device("cpu")


def finish(torch_device: torch.device) -> None:
    """Wait until a GPU has completed all launched work, so that a clock can be read."""
    if torch_device.type == "cuda":
        torch.cuda.synchronize(torch_device)


@dataclass(frozen=True)
class TrainingTask:
    """A round to measure, with `steps` batches of `batch` samples per device, drawn without replacement."""

    title: str
    model: Model
    shape: tuple[int, ...]
    devices: int
    samples: int  # per device
    steps: int
    batch: int
    rounds: int  # consecutive rounds per repeat, as in a run

    def data(self) -> Split:
        """Draw random images and labels, as speed does not depend on their content."""
        rng = np.random.default_rng(0)
        count = self.devices * self.samples
        x = rng.integers(0, 256, (count, *self.shape), dtype=np.uint8)
        return Split(x, rng.integers(0, CLASSES, count))


LOGISTIC = TrainingTask("Logistic regression 784->10", Logistic(), (28, 28), 100, 600, 5, 128, rounds=5)
MLP2 = TrainingTask("mlp2, 60->128->10", Mlp2(), (60,), 30, 200, 20, 10, rounds=5)  # FLASH's batches
CNN = TrainingTask(
    "SVHN CNN (listing 2), 3x32x32", SvhnCnn(variant="early"), (3, 32, 32), 20, 320, 5, 64, rounds=1
)
RESNET = TrainingTask("ResNet-18, 3x32x32", Resnet18(), (3, 32, 32), 100, 320, 5, 64, rounds=1)
SMALL_RESNET = replace(RESNET, devices=5)  # a round takes about 4 s on a CPU with one thread
# name -> the model, and whether to train it in bfloat16
Ways = Mapping[str, tuple[Model, bool]]
# runs use the first entry of each task


class AsImagesLie(SvhnCnn):
    """A network that does not convert images to channels-last order."""

    channels_last_gain: ClassVar = "none"


OF_CNN: Ways = {
    "": (CNN.model, False),
    ", images in stored order": (AsImagesLie(variant="early"), False),
    ", bf16": (CNN.model, True),
}
ON_A_CPU: Sequence[tuple[TrainingTask, Ways]] = (
    (LOGISTIC, {"": (LOGISTIC.model, False)}),
    (MLP2, {"": (MLP2.model, False)}),
    (CNN, OF_CNN),
    (SMALL_RESNET, {"": (RESNET.model, False), ", bf16": (RESNET.model, True)}),
)
ON_A_GPU = (LOGISTIC, replace(CNN, devices=100), RESNET)


def run(
    repeats: int = 5,
    threads: int = 2,
    torch_device: torch.device = CPU,
    *,
    floor: bool = False,
    short: bool = False,
) -> dict[str, Any]:
    """Compare local training with a PyTorch loop, in four tasks on a CPU, or in three tasks of 100 devices on a GPU.

    Args:
        repeats: measured repeats, interleaved; each figure is their median.
        threads: threads of the parallel variants on a CPU, which should have this many idle cores.
        floor: whether to compute the least time of a round on this machine too; CPU only.
        short: whether to measure small tasks, which take less than a minute on a CPU.

    Returns:
        `tasks`, each with `title`, `rounds_per_s` by name, and `ratio`: edgefl's speed over the loop's speed. With
        `floor` also `floor`, the work of a round, and `over_floor`, each job's time relative to the least time. On a
        GPU also `matrix_peak_flops`, measured with large bfloat16 products, and each task's `peak_share` by name.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        if torch_device.type == "cpu":
            tasks = [
                _beside_loop(
                    shortened(task) if short else task, possible(ways), repeats, threads, floor=floor
                )
                for task, ways in ON_A_CPU
            ]
            return {"threads": threads, "tasks": tasks}
        peak = matrix_peak_flops(torch_device)
        tasks = [
            beside_peak(shortened(task) if short else task, torch_device, peak, repeats) for task in ON_A_GPU
        ]
        return {"matrix_peak_flops": peak, "tasks": tasks}
    finally:
        torch.set_num_threads(before)


def shortened(task: TrainingTask) -> TrainingTask:
    """Return a smaller version of a task: fewer rounds of a small model, or a smaller round of a large one."""
    if isinstance(task.model, Logistic | Mlp2):
        return replace(task, rounds=1)
    return replace(task, devices=min(4, task.devices // 2), samples=64, steps=2, batch=32)


def possible(ways: Ways) -> Ways:
    """Leave out bfloat16 if this machine lacks instructions for it, as training would be far slower."""
    slow = has_bf16() is False
    return {name: (model, bf16) for name, (model, bf16) in ways.items() if not (bf16 and slow)}


def work_of(task: TrainingTask) -> Work:
    """Return the least work that a round of a task needs."""
    samples = task.devices * task.steps * task.batch
    module = task.model.build(task.shape, CLASSES)
    parameters = sum(parameter.numel() for parameter in module.parameters())
    return Work(
        samples * flops_per_sample(module, task.shape),
        samples * math.prod(task.shape) + task.devices * parameters * 4 * 3,
        task.devices * task.samples,
    )


def beside_peak(
    task: TrainingTask, torch_device: torch.device, peak_flops: float, repeats: int
) -> dict[str, Any]:
    """Measure a task on a GPU, in rounds per second and as shares of the peak FLOPs."""
    data = task.data()
    jobs: dict[str, Callable[[], float]] = {
        "PyTorch loop": Loop(task, data, torch_device),
        "edgefl": Ours(task, data, 1, torch_device=torch_device, batching="auto"),
        "edgefl, bf16": Ours(task, data, 1, True, torch_device=torch_device, batching="auto"),
    }
    measured = _measured(task, jobs, repeats)
    samples = task.devices * task.steps * task.batch
    flops = samples * flops_per_sample(task.model.build(task.shape, CLASSES), task.shape)
    rates = measured["rounds_per_s"]
    measured["peak_share"] = {name: rate * flops / peak_flops for name, rate in rates.items()}
    return measured


def matrix_peak_flops(torch_device: torch.device, size: int = PEAK_SIZE) -> float:
    """Measure the FLOPs per second of square bfloat16 matrix products."""
    matrix = torch.randn(size, size, device=torch_device).bfloat16()
    product = matrix @ matrix
    finish(torch_device)
    began = time.perf_counter()
    for _ in range(PEAK_PRODUCTS):
        torch.mm(matrix, matrix, out=product)
    finish(torch_device)
    return PEAK_PRODUCTS * 2 * size**3 / (time.perf_counter() - began)


def _beside_loop(
    task: TrainingTask,
    ways: Ways,
    repeats: int,
    threads: int,
    *,
    floor: bool = False,
) -> dict[str, Any]:
    """Measure a task on a CPU in each way, with one thread and with several.

    Args:
        floor: whether to measure the machine's speeds in each repeat, too, so that other load affects speeds and task
        alike.
    """
    say(task.title)
    from tests.tools.bench.jax_rounds import rivals

    data = task.data()
    jobs: dict[str, Callable[[], float]] = {RIVAL: Loop(task, data), **rivals(task, data)}
    threads_of = dict.fromkeys(jobs, 1)
    for count in sorted({1, threads}):
        for name, (model, bf16) in ways.items():
            ours = f"edgefl, {count} thread{'s' * (count > 1)}{name}"
            jobs[ours], threads_of[ours] = Ours(replace(task, model=model), data, count, bf16), count
    work, floors_s = work_of(task), {count: list[float]() for count in sorted({1, threads}) if floor}

    def measure_floor() -> float:
        for count, floor_s in floors_s.items():
            floor_s.append(Speeds.measured(count).seconds(work))
        return 1.0

    measured = _measured(task, jobs, repeats, {"floor": measure_floor} if floor else {})
    if floor:
        rates, least_s = measured["rounds_per_s"], {count: median(all_s) for count, all_s in floors_s.items()}
        measured["floor"] = asdict(work) | {"seconds": least_s}
        measured["over_floor"] = {
            name: 1 / (rates[name] * least_s[count])
            for name, count in threads_of.items()
            if "bf16" not in name
        }
    return measured


def _measured(
    task: TrainingTask,
    jobs: Mapping[str, Callable[[], float]],
    repeats: int,
    beside: Mapping[str, Callable[[], float]] | None = None,
) -> dict[str, Any]:
    """Compare jobs with the first job, which is the rival; `beside` is only measured, not compared."""

    def several(job: Callable[[], float]) -> float:
        return sum(job() for _ in range(task.rounds))

    measured = {name: partial(several, job) for name, job in jobs.items()}
    found = interleaved({**measured, **(beside or {})}, repeats)
    rates = {name: found[name] for name in jobs}
    rival, *ours = rates
    return {
        "title": f"{task.title}: {task.devices} devices, {task.steps} steps of {task.batch}",
        "rounds_per_s": rates,
        "ratio": {name: rates[name] / rates[rival] for name in ours},
    }


class Ours:
    """A round as in edgefl's learner, with batches from named streams, local training, and aggregation."""

    def __init__(
        self,
        task: TrainingTask,
        data: Split,
        threads: int,
        bf16: bool = False,
        algorithm: Algorithm | None = None,
        torch_device: torch.device = CPU,
        batching: Batching = "sequential",
        memory_bytes: int | None = None,
        compiled: bool = False,
    ) -> None:
        repeat_on_gpus()  # as in a run, neither this job nor its rivals train in TF32 on a GPU
        module = task.model.build(task.shape, CLASSES).to(torch_device)
        split = SplitInMemory(data, np.array(MEAN), np.array(STD), torch_device)
        training = LocalTraining(
            task.model,
            module,
            split,
            UpdateRule(MOMENTUM),
            batching=batching,
            bf16=bf16,
            threads=threads,
            memory_bytes=memory_bytes,
            compiled=compiled,
        )
        states = DeviceStates(task.devices, split.x.device)
        self._track = TrainedModel(training, algorithm or FedAvg(), states, training.layout.flatten(module))
        self._own = list(np.arange(task.devices * task.samples).reshape(task.devices, task.samples))
        self._held = dict.fromkeys(range(task.devices), task.samples)
        self._task, self._streams, self._rounds = task, Streams(0), 0
        self._track.open(self._track.model, self._held)

    @property
    def model(self) -> Tensor:
        """The model [M] after the rounds so far."""
        return self._track.model

    def __call__(self) -> float:
        self._rounds += 1
        ids, steps = list(self._held), [self._task.steps] * self._task.devices
        generators = self._streams.in_turn(("batches",), ids, self._rounds)
        self._track.train(ids, draw_batches(self._own, steps, self._task.batch, generators), LR, [])
        self._track.aggregate(ids, self._held)
        finish(self.model.device)
        return 1.0


class Loop:
    """The rival, which trains one device after the other in plain, carefully written PyTorch.

    Inputs are normalised and divided among devices beforehand; module, optimizer and sums are reused.
    """

    def __init__(self, task: TrainingTask, data: Split, torch_device: torch.device = CPU) -> None:
        self._task = task
        self._module = task.model.build(task.shape, CLASSES).to(torch_device)
        self._parameters = list(self._module.parameters())
        self._optimizer = torch.optim.SGD(self._parameters, lr=LR, momentum=MOMENTUM)
        x = (torch.from_numpy(data.x).to(torch_device).float() - MEAN) / STD
        y = torch.from_numpy(data.y).to(torch_device)
        self._own = list(zip(x.split(task.samples), y.split(task.samples), strict=True))
        self._global = [parameter.detach().clone() for parameter in self._parameters]
        self._total = [torch.zeros_like(parameter) for parameter in self._global]

    @property
    def model(self) -> Tensor:
        """The model [M] after the rounds so far."""
        return torch.cat([part.flatten() for part in self._global])

    def begin_with(self, model: Tensor) -> None:
        """Replace the model [M] that the next round begins with."""
        for part, new in zip(self._global, model.split([part.numel() for part in self._global]), strict=True):
            part.copy_(new.view_as(part))

    def __call__(self) -> float:
        for part in self._total:
            part.zero_()
        for x, y in self._own:
            with torch.no_grad():
                for parameter, part in zip(self._parameters, self._global, strict=True):
                    parameter.copy_(part)
            self._optimizer.state.clear()
            for batch in torch.randperm(len(y), device=y.device).split(self._task.batch)[: self._task.steps]:
                self._optimizer.zero_grad()
                functional.cross_entropy(self._module(x[batch]), y[batch]).backward()
                self._optimizer.step()
            for part, parameter in zip(self._total, self._parameters, strict=True):
                part.add_(parameter.detach(), alpha=1 / self._task.devices)
        for part, new in zip(self._global, self._total, strict=True):
            part.copy_(new)
        finish(self._global[0].device)
        return 1.0
