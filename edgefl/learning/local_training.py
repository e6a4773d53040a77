"""Local SGD of many devices at once: stacked in chunks, state restarted for every device and round."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.device_data import DeviceSplit
from edgefl.learning.models import Model
from edgefl.learning.parameters import Layout

# Devices trained together. Ten keep the batch (10 x 128 x 784 floats = 4 MB) and the models in a CPU's
# cache; all 100 at once are slower than one by one. A GPU wants more work per launch.
CPU_CHUNK = 10
CUDA_CHUNK = 128


@dataclass(frozen=True)
class Batches:
    """Mini-batches of K devices: sample indices [K, steps, B] and weights [K, steps, B].

    Weights of one batch sum to one; padding of a short batch has index 0 and weight 0.
    """

    rows: np.ndarray
    weights: np.ndarray


def draw_batches(
    samples: Sequence[np.ndarray], steps: int, batch: int, generators: Sequence[np.random.Generator]
) -> Batches:
    """Mini-batches without replacement, as a PyTorch DataLoader without drop_last gives them.

    Each epoch shuffles the device's samples and cuts them into batches of B; the last one of an epoch may
    be shorter, and a device with fewer than B samples uses all of them in every step.

    Args:
        samples: per device, indices of its training samples (at least one each).
        steps: local iterations e.
        batch: B.
        generators: per device, its stream for this round.
    """
    widest = min(batch, max(len(own) for own in samples))
    rows = np.zeros((len(samples), steps, widest), dtype=np.int64)
    weights = np.zeros((len(samples), steps, widest), dtype=np.float32)
    for k, (own, rng) in enumerate(zip(samples, generators, strict=True)):
        step = 0
        while step < steps:
            epoch = rng.permutation(own)
            for begin in range(0, len(epoch), batch):
                if step == steps:
                    break
                chosen = epoch[begin : begin + batch]
                rows[k, step, : len(chosen)] = chosen
                weights[k, step, : len(chosen)] = 1.0 / len(chosen)
                step += 1
    return Batches(rows, weights)


class LocalTraining:
    """Trains the participants of a round from one start model, SGD with momentum restarted each round."""

    def __init__(
        self, model: Model, module: nn.Module, layout: Layout, train: DeviceSplit, momentum: float
    ) -> None:
        self._model = model
        self._module = module
        self._layout = layout
        self._train = train
        self._momentum = momentum
        self._device = train.x.device
        self.chunk = CUDA_CHUNK if self._device.type == "cuda" else CPU_CHUNK

    @torch.no_grad()
    def run(self, start: Tensor, batches: Batches, lr: float, algorithm: Algorithm, state: Any) -> Tensor:
        """[K, M] local models after training from start [M]."""
        devices, steps, _ = batches.rows.shape
        result = start.new_empty((devices, start.numel()))
        for begin in range(0, devices, self.chunk):
            chunk = slice(begin, min(begin + self.chunk, devices))
            rows = torch.from_numpy(batches.rows[chunk]).to(self._device)
            weights = torch.from_numpy(batches.weights[chunk]).to(self._device)
            local = result[chunk]
            local.copy_(start)
            velocity = torch.zeros_like(local)
            for step in range(steps):
                grads = self._model.gradients(
                    self._module,
                    self._layout,
                    local,
                    self._train.normalised(rows[:, step]),
                    self._train.y[rows[:, step]],
                    weights[:, step],
                )
                grads = algorithm.correct(grads, local, start, state)
                velocity.mul_(self._momentum).add_(grads)
                local.sub_(velocity, alpha=lr)
        return result
