"""Compare a whole run over the `nr` radio with loops in PyTorch and JAX without radio."""

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from edgefl import simulate
from edgefl.learning.datasets import Split
from edgefl.scenario.scenario import Scenario, given
from tests.tools.bench import run as shares
from tests.tools.bench import say
from tests.tools.bench.jax_rounds import rivals
from tests.tools.bench.training import LOGISTIC, Loop, TrainingTask

TESTED = 1000  # number of test samples after each round
PROCESSES = 2  # of the rival `LoopOfProcesses`


def scenario_of(task: TrainingTask, file: Path, rounds: int) -> Scenario:
    """Return a scenario that trains a task's logistic regression over the `nr` radio."""
    local = {"steps": task.steps, "batch": task.batch, "lr": 0.01}
    return given(
        {
            "name": "whole",
            "devices": {"count": task.devices},
            "radio": {"preset": "nr"},
            "sessions": {"name": "schedule", "count": 1, "rounds": rounds},
            "learning": {
                "dataset": {"name": "npz", "path": str(file)},
                "partition": "iid",
                "model": "logistic",
                "algorithm": "fedavg",
                "local": local,
            },
        }
    )


def run(
    rounds: int = 20, repeats: int = 3, task: TrainingTask = LOGISTIC, *, floats: bool = False
) -> dict[str, Any]:
    """Measure whole runs and their rivals, interleaved, after one warm-up each.

    Args:
        floats: whether the data file has floats instead of bytes.

    Returns:
        `wall_ms` and `cpu_ms` of a round by name, medians over the repeats, including a run's start and end; `parts`:
        part -> milliseconds of a round in a run with one thread; `ratio`: wall time of each rival divided by that of
        the run.
    """
    data = task.data()
    wall: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "images.npz")
        x = data.x.astype(np.float32) / 255 if floats else data.x
        np.savez(file, x_train=x, y_train=data.y, x_test=x[:TESTED], y_test=data.y[:TESTED])
        scenario, runs = scenario_of(task, file, rounds), iter(range(10**6))

        def ours(threads: int) -> float:
            simulate(scenario, Path(folder, str(next(runs))), device="cpu", threads=threads)
            return 0.0

        several = LoopOfProcesses(task, data)
        jobs: dict[str, Callable[[], float]] = {
            "edgefl, 1 thread": lambda: ours(1),
            f"edgefl, {PROCESSES} threads": lambda: ours(PROCESSES),
            "PyTorch loop": partial(_rounds, Loop(task, data), rounds),
            f"PyTorch loop, {PROCESSES} processes": lambda: sum(several() for _ in range(rounds)),
        }
        jobs |= {name: partial(_rounds, rival, rounds) for name, rival in rivals(task, data).items()}
        with several:
            for number in range(repeats + 1):
                for name, job in jobs.items():
                    say(f"{name}: {f'repeat {number} of {repeats}' if number else 'warm-up'}")
                    began, spent = time.perf_counter(), sum(os.times()[:4])
                    elsewhere_s = job()
                    taken = time.perf_counter() - began, sum(os.times()[:4]) - spent + elsewhere_s
                    if number:
                        for of, seconds in zip((wall, cpu), taken, strict=True):
                            of.setdefault(name, []).append(1000 * seconds / rounds)
        parts = shares.run(scenario, device="cpu", threads=1)
    wall_ms, cpu_ms = ({name: median(each) for name, each in of.items()} for of in (wall, cpu))
    own = wall_ms[f"edgefl, {PROCESSES} threads"]
    return {
        "title": f"{task.title}: {task.devices} devices, {task.steps} steps of {task.batch}, {rounds} rounds",
        "load": os.getloadavg()[0],
        "wall_ms": wall_ms,
        "cpu_ms": cpu_ms,
        "ratio": {name: ms / own for name, ms in wall_ms.items() if "edgefl" not in name},
        "parts": {name: 1000 * parts["wall_s"] * share / rounds for name, share in parts["shares"].items()},
    }


def _rounds(rival: Callable[[], float], rounds: int) -> float:
    """Train rounds in this process; return 0, the CPU time in s of other processes."""
    for _ in range(rounds):
        rival()
    return 0.0


class LoopOfProcesses:
    """The rival on several cores: each process trains some of the devices, and models are averaged every round."""

    def __init__(self, task: TrainingTask, data: Split, count: int = PROCESSES) -> None:
        part = replace(task, devices=task.devices // count)
        spawn, many = multiprocessing.get_context("spawn"), part.devices * part.samples
        self._pipes: list[Connection] = []
        self._processes = []
        for number in range(count):
            ours, theirs = spawn.Pipe()
            some = slice(number * many, (number + 1) * many)
            own = (theirs, part, Split(data.x[some], data.y[some]))
            self._processes.append(spawn.Process(target=_train, args=own, daemon=True))
            self._pipes.append(ours)
        self.model = Loop(part, Split(data.x[:many], data.y[:many])).model

    def __enter__(self) -> "LoopOfProcesses":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *args: object) -> None:
        for pipe, process in zip(self._pipes, self._processes, strict=True):
            pipe.send(None)
            process.join()

    def __call__(self) -> float:
        """Train a round; return the CPU time of the processes in s."""
        for pipe in self._pipes:
            pipe.send(self.model.numpy())
        models, spent_s = zip(*(pipe.recv() for pipe in self._pipes), strict=True)
        self.model = torch.from_numpy(np.mean(models, axis=0))
        return float(sum(spent_s))


def _train(pipe: Connection, task: TrainingTask, data: Split) -> None:
    torch.set_num_threads(1)
    loop = Loop(task, data)
    while (model := pipe.recv()) is not None:
        began = time.process_time()
        loop.begin_with(torch.from_numpy(model))
        loop()
        pipe.send((loop.model.numpy(), time.process_time() - began))
