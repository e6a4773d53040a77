"""Measure the memory of training many large models: the journal's CIFAR setting on random images of its shape."""

import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch

from edgefl.config import registry
from edgefl.learning.models.resnet18 import Resnet18
from tests.tools.bench import peak_memory_mb
from tests.tools.bench.training import CLASSES, CPU, Ours, TrainingTask

ALGORITHMS = ("fedavg", "fedprox", "scaffold")
PAPER_GB = {"fedprox": 57.32, "scaffold": 56.64}  # J, Table IX, CIFAR-10, overlap 0.2, alpha 0.3
SAMPLES, SHAPE = 50_000, (3, 32, 32)


def run(
    devices: int = 100, rounds: int = 3, steps: int = 1, batch: int = 128, torch_device: torch.device = CPU
) -> dict[str, Any]:
    """Measure the peak memory of each algorithm with ResNet-18, each in a separate process.

    Returns:
        `rows` with `algorithm`, `peak_memory_gb` (resident memory including the data set and PyTorch, plus GPU
        memory), `models_gb` (devices x parameters x 4 bytes: the local models, all of which wait for
        uploads), `paper_gb` (the journal's figure, if any) and `wall_s`.
    """
    # spawned, because a forked process would start with the memory pages of this one
    context = multiprocessing.get_context("spawn")
    rows = []
    for algorithm in ALGORITHMS:
        with ProcessPoolExecutor(1, context) as pool:
            rows.append(pool.submit(_row, algorithm, devices, rounds, steps, batch, torch_device).result())
    return {"devices": devices, "rounds": rounds, "steps": steps, "batch": batch, "rows": rows}


def _row(
    name: str, devices: int, rounds: int, steps: int, batch: int, torch_device: torch.device = CPU
) -> dict[str, Any]:
    torch.set_num_threads(1)
    model = Resnet18()
    task = TrainingTask("ResNet-18", model, SHAPE, devices, SAMPLES // devices, steps, batch, rounds)
    algorithm: Any = registry.get("algorithms", name)()
    job = Ours(task, task.data(), 1, algorithm=algorithm, torch_device=torch_device)
    began = time.perf_counter()
    for _ in range(rounds):
        job()
    on_gpu = torch.cuda.max_memory_allocated(torch_device) if torch_device.type == "cuda" else 0
    parameters = sum(parameter.numel() for parameter in model.build(SHAPE, CLASSES).parameters())
    return {
        "algorithm": name,
        "peak_memory_gb": (peak_memory_mb() * 2**20 + on_gpu) / 1e9,
        "models_gb": devices * parameters * 4 / 1e9,
        "paper_gb": PAPER_GB.get(name),
        "wall_s": time.perf_counter() - began,
    }
