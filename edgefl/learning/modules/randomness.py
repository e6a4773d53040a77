"""Watch and seed the global random generators that a module may draw from while it runs."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor


@contextmanager
def watched(torch_device: torch.device) -> Iterator[set[str]]:
    """Restore PyTorch's generators after a `with` block; the yielded set then names the generators drawn from.

    The names are `torch`, `random` (Python's generator) and `numpy`.
    """
    drawn: set[str] = set()
    python, numpy, tensors = random.getstate(), _of_numpy(), _of_torch(torch_device)
    with torch.random.fork_rng(devices=_gpus(torch_device)):
        yield drawn
        if not all(map(torch.equal, tensors, _of_torch(torch_device))):
            drawn.add("torch")
    if random.getstate() != python:
        drawn.add("random")
    if _of_numpy() != numpy:
        drawn.add("numpy")


@contextmanager
def seeded(generator: torch.Generator, torch_device: torch.device) -> Iterator[None]:
    """Seed PyTorch's global generators from a device's own generator for a `with` block, then restore them."""
    seed = int(torch.randint(2**63 - 1, (), generator=generator))
    with torch.random.fork_rng(devices=_gpus(torch_device)):
        torch.default_generator.manual_seed(seed)
        if torch_device.type != "cpu":
            torch.get_device_module(torch_device).manual_seed(seed)
        yield


def _gpus(torch_device: torch.device) -> list[torch.device]:
    return [torch_device] if torch_device.type == "cuda" else []


def _of_torch(torch_device: torch.device) -> list[Tensor]:
    return [torch.get_rng_state(), *(torch.cuda.get_rng_state(gpu) for gpu in _gpus(torch_device))]


def _of_numpy() -> tuple[bytes, int]:
    _, words, place, *_ = np.random.get_state()  # noqa: NPY002
    return np.asarray(words).tobytes(), int(place)
