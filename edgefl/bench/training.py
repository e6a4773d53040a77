"""Speed of local training: a round of many devices against a sequential PyTorch loop in the same run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from edgefl.bench import interleaved
from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.batches import draw_batches
from edgefl.learning.datasets import Split
from edgefl.learning.device_data import DeviceSplit
from edgefl.learning.device_states import DeviceStates
from edgefl.learning.gradients import Precision
from edgefl.learning.local_training import LocalTraining
from edgefl.learning.models import Model
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.models.svhn_cnn import SvhnCnn
from edgefl.learning.track import Track
from edgefl.rng import Streams

LR, MOMENTUM, MEAN, STD, CLASSES = 0.01, 0.9, 72.9, 90.0, 10
LOOP = "PyTorch loop, 1 thread"


@dataclass(frozen=True)
class Task:
    """A round: `steps` batches of B on each device, shuffled, without replacement."""

    title: str
    model: Model
    shape: tuple[int, ...]
    devices: int
    samples: int  # of each device
    steps: int
    batch: int
    rounds: int  # of one repeat: back to back, as in a run

    def data(self) -> Split:
        """Random images and labels: speed does not depend on their content."""
        rng = np.random.default_rng(0)
        count = self.devices * self.samples
        x = rng.integers(0, 256, (count, *self.shape), dtype=np.uint8)
        return Split(x, rng.integers(0, CLASSES, count))


LOGISTIC = Task("Logistic regression 784->10", Logistic(), (28, 28), 100, 600, 5, 128, rounds=5)
CNN = Task("SVHN CNN (listing 2), 3x32x32", SvhnCnn(variant="early"), (3, 32, 32), 20, 320, 5, 64, rounds=1)


def run(repeats: int = 5, threads: int = 2) -> dict[str, Any]:
    """Measure both tasks on the CPU.

    Args:
        repeats: counted repeats, interleaved; each figure is their median.
        threads: of the parallel variants; one core each should be idle.

    Returns:
        `tasks`, each with `title`, `rounds_per_s` by name, and `ratio`: ours over the loop.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return {"threads": threads, "tasks": [_logistic(repeats, threads), _cnn(repeats, threads)]}
    finally:
        torch.set_num_threads(before)


def _logistic(repeats: int, threads: int) -> dict[str, Any]:
    data = LOGISTIC.data()
    jobs = {LOOP: loop(LOGISTIC, data), "edgefl, 1 thread": ours(LOGISTIC, data, 1)}
    if threads > 1:
        jobs[f"edgefl, {threads} threads"] = ours(LOGISTIC, data, threads)
    return _measured(LOGISTIC, jobs, repeats)


def _cnn(repeats: int, threads: int) -> dict[str, Any]:
    data = CNN.data()
    jobs = {LOOP: loop(CNN, data)}
    for count in sorted({1, threads}):
        name = f"edgefl, {count} thread{'s' * (count > 1)}"
        jobs[name] = ours(CNN, data, count)
        jobs[f"{name}, channels last"] = ours(CNN, data, count, Precision(channels_last=True))
        jobs[f"{name}, channels last, bf16"] = ours(CNN, data, count, Precision(True, channels_last=True))
    return _measured(CNN, jobs, repeats)


def _measured(task: Task, jobs: dict[str, Callable[[], float]], repeats: int) -> dict[str, Any]:

    def several(job: Callable[[], float]) -> float:
        return sum(job() for _ in range(task.rounds))

    rates = interleaved({name: partial(several, job) for name, job in jobs.items()}, repeats)
    return {
        "title": f"{task.title}: {task.devices} devices, {task.steps} steps of {task.batch}",
        "rounds_per_s": rates,
        "ratio": {name: rate / rates[LOOP] for name, rate in rates.items() if name != LOOP},
    }


def ours(
    task: Task,
    data: Split,
    threads: int,
    precision: Precision | None = None,
    algorithm: Algorithm | None = None,
) -> Callable[[], float]:
    """A round as the learner does it: batches from named streams, local training, aggregation."""
    module = task.model.build(task.shape, CLASSES)
    split = DeviceSplit(data, np.array(MEAN), np.array(STD), torch.device("cpu"))
    training = LocalTraining(
        task.model, module, split, MOMENTUM, batching="sequential", precision=precision, threads=threads
    )
    states = DeviceStates(task.devices, split.x.device)
    track = Track(training, algorithm or FedAvg(), states, training.layout.flatten(module))
    own = np.arange(task.devices * task.samples).reshape(task.devices, task.samples)
    held = dict.fromkeys(range(task.devices), task.samples)
    ids, steps, streams = list(held), [task.steps] * task.devices, Streams(0)
    track.open(track.model, held)
    rounds = 0

    def job() -> float:
        nonlocal rounds
        rounds += 1
        generators = [streams("batches", id_, rounds) for id_ in ids]
        track.train(ids, draw_batches(list(own), steps, task.batch, generators), LR, [])
        track.aggregate(ids, held)
        return 1.0

    return job


def loop(task: Task, data: Split) -> Callable[[], float]:
    """The rival: one device after the other, in plain PyTorch as one would write it with care.

    Inputs are normalised and dealt out beforehand; module, optimizer and sums are reused.
    """
    module = task.model.build(task.shape, CLASSES)
    parameters = list(module.parameters())
    optimizer = torch.optim.SGD(parameters, lr=LR, momentum=MOMENTUM)
    x = (torch.from_numpy(data.x).float() - MEAN) / STD
    own = list(zip(x.split(task.samples), torch.from_numpy(data.y).split(task.samples), strict=True))
    model = [parameter.detach().clone() for parameter in parameters]
    total = [torch.zeros_like(parameter) for parameter in model]

    def job() -> float:
        for part in total:
            part.zero_()
        for x, y in own:
            with torch.no_grad():
                for parameter, part in zip(parameters, model, strict=True):
                    parameter.copy_(part)
            optimizer.state.clear()
            for batch in torch.randperm(len(y)).split(task.batch)[: task.steps]:
                optimizer.zero_grad()
                functional.cross_entropy(module(x[batch]), y[batch]).backward()
                optimizer.step()
            for part, parameter in zip(total, parameters, strict=True):
                part.add_(parameter.detach(), alpha=1 / task.devices)
        for part, new in zip(model, total, strict=True):
            part.copy_(new)
        return 1.0

    return job
