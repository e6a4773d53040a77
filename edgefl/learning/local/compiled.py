"""Run local training in a function compiled by numba (`learning.kernels: numba`), without PyTorch's operations."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from edgefl.errors import EdgeflError
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.kernels import PLACE, numba_name
from edgefl.learning.local.local_task import LocalModels, LocalTask
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.modules.parameters import TensorLayout

DEVICES = 10  # number of devices in a chunk, which a thread trains in one call


class CompiledTraining:
    """Compiled SGD of fully connected networks, which trains a chunk of devices for a whole round in one call.

    Args:
        layout: layout of the model's parameters in a vector; see also `Model.hidden_widths`.
        train: the training data, in the CPU's memory.
    """

    def __init__(self, layout: TensorLayout, train: SplitInMemory, rule: UpdateRule, threads: int) -> None:
        numba_name()
        if train.x.device.type != "cpu":
            raise EdgeflError("numba trains on a CPU only: use --device cpu, or set kernels: torch", PLACE)
        weights = layout.shapes[::2]
        self._widths = np.array([weights[0][1], *(shape[0] for shape in weights)])
        self._train, self._rule = train, rule
        self._rooms: list[tuple[int, Any]] = [(0, None)] * threads
        self._mean, self._scale = (
            torch.broadcast_to(one, train.x.shape[1:]).flatten().numpy() for one in (train.mean, train.scale)
        )

    def train(self, task: LocalTask, models: LocalModels, hand: int, positions: Sequence[int]) -> None:
        """Train the devices at these indices in the round; `hand` is the number of the calling thread."""
        from edgefl.learning.local.numba_training import train, workspace

        batches, rule = task.batches, self._rule
        batch = batches.rows.shape[2]
        if self._rooms[hand][0] != batch:
            self._rooms[hand] = batch, workspace(self._widths, batch)
        train(
            np.array(positions),
            models.rows.numpy(),
            task.start.reshape(-1, task.start.shape[-1]).numpy(),
            self._train.x.flatten(1).numpy(),
            self._train.y.numpy(),
            batches.rows,
            batches.weights,
            batches.sizes,
            batches.steps,
            self._mean,
            self._scale,
            self._widths,
            *self._rooms[hand][1],
            (np.float32(rule.momentum), np.float32(rule.weight_decay), np.float32(task.lr)),
        )
