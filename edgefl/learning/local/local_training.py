"""Run the local training of a round's devices, in chunks."""

from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.errors import EdgeflError, clipped
from edgefl.learning.data.batches import Batches
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.local.batching import CHUNK_BYTES, Batching, choose
from edgefl.learning.local.chunk_training import ChunkTraining, Worker
from edgefl.learning.local.compiled import DEVICES, CompiledTraining
from edgefl.learning.local.gradients import ByHand, Kernel, OneByOne, Stacked
from edgefl.learning.local.local_task import LocalModels, LocalTask
from edgefl.learning.local.trial import trained_once, try_step
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.local.whole_gradient import whole_gradient
from edgefl.learning.models import Model
from edgefl.learning.modules.module_facts import (
    example,
    numbers_kept,
    refuse_hidden_parameters,
    refuse_wrong_bf16_gradients,
    smallest_batch,
)
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.objective import CLASSIFICATION, of_cross_entropy
from edgefl.learning.tasks import Task
from edgefl.learning.thread_pool import ThreadPool


class LocalTraining:
    """Local training of a round's participants by an optimiser.

    The result does not depend on the number of threads or the load of the machine: chunks of devices depend on model,
    data and settings only, and each chunk is computed by one thread. A model that draws random numbers from PyTorch's
    generators is trained one device after the other, by one thread; each step is seeded from the device's stream.

    Args:
        model: the model; its hand-written gradients, if any, are used in float32.
        module: the model's module, on the torch device.
        train: the training data, on the torch device.
        rule: the rule that turns gradients into steps.
        batching: `stacked` trains the devices of a chunk together, `sequential` one after the other; for `auto` see
            `batching.choose`.
        bf16: whether matrix products and convolutions are computed in bfloat16.
        memory_bytes: memory that a chunk of stacked devices may take; the default (None) is `CHUNK_BYTES`.
        threads: how many chunks are trained at the same time; always 1 on a GPU.
        task: the task that defines the devices' loss; losses other than cross-entropy need automatic differentiation.
        compiled: whether numba trains the models instead of PyTorch, see `learning.kernels`.

    Attributes:
        layout: layout of parameters and statistics in a model's vector.
        smallest_batch: smallest number of samples in a batch.
    """

    def __init__(
        self,
        model: Model,
        module: nn.Module,
        train: SplitInMemory,
        rule: UpdateRule,
        *,
        batching: Batching = "auto",
        bf16: bool = False,
        memory_bytes: int | None = None,
        threads: int = 1,
        task: Task = CLASSIFICATION,
        compiled: bool = False,
    ) -> None:
        self._task = task
        self._model = model
        self._module = module
        self._train = train
        self._rule = rule
        self._batching = batching
        self._bf16 = bf16
        self._memory_bytes = memory_bytes or CHUNK_BYTES[train.x.device.type]
        self._workers: dict[type[Kernel], list[Worker]] = {}
        self._buffers: dict[str, Tensor] = {}
        self._refusals: dict[bool, EdgeflError | None] = {}
        self.layout = ModelLayout.of(module)
        self.smallest_batch = smallest_batch(module)
        if bf16 and train.x.device.type == "cpu":
            refuse_wrong_bf16_gradients(module, example(train.x))
        # numba's networks are edgefl's own
        self._draws = False
        if not compiled:
            self._draws = trained_once(self._kernel(OneByOne), module, train)
        # PyTorch's generators, from which a model may draw, belong to all threads
        self._pool = ThreadPool(threads if train.x.device.type == "cpu" and not self._draws else 1)
        if batching == "stacked" and (refusal := self._stacking_refused(terms=False)):
            raise refusal
        self._compiled = (
            CompiledTraining(self.layout.parameters, train, rule, self._pool.count) if compiled else None
        )

    @torch.no_grad()
    def run(self, task: LocalTask, *, anew: bool = False) -> LocalModels:
        """Train the local models of K devices; a device without steps ends with the model that it received.

        Args:
            anew: whether to write into new memory because earlier results are still needed; otherwise the results
                overwrite the last call's results.

        Raises:
            EdgeflError: `learning.local.batching` is stacked, but this model cannot be stacked; or a GPU's memory is
                full (a smaller chunk would round differently, so it is not chosen automatically).
        """
        count = len(task.batches.rows)
        models = LocalModels(
            rows=self._buffer("local", count, task.start, anew),
            personal=None if task.personal is None else self._buffer("personal", count, task.start, anew),
            steps=task.batches.steps.copy(),
            tested=np.zeros(count, dtype=np.int64),
            optimiser=None if task.optimiser is None else task.start.new_zeros(count, self.state_size),
        )
        if self._compiled is not None:
            self._pool.work(partial(self._compiled.train, task, models), list(_cut(task.batches, DEVICES)))
            return models
        kind = self._kind(task)
        try:
            self._run(kind, task, models)
        except torch.OutOfMemoryError as error:
            raise EdgeflError(
                f"{self._memory_bytes / 1e9:g} GB for devices trained together do not fit in the GPU's "
                "memory: train the devices one by one (batching: sequential)",
                ("learning", "local", "batching"),
            ) from error
        except (RuntimeError, NotImplementedError) as error:
            if kind is not Stacked:
                raise
            raise _not_stacked(str(error)) from error
        return models

    @torch.no_grad()
    def losses(self, models: Tensor, samples: Sequence[np.ndarray]) -> Tensor:
        """Compute the mean losses [K, C] of models [C, M + Q] on the samples of K devices; 0 without samples."""
        (worker,) = self._workers_with(OneByOne, 1)
        losses = models.new_zeros(len(samples), len(models))
        for k, indices in enumerate(samples):
            rows = torch.from_numpy(indices).to(models.device)
            for c, row in enumerate(models if len(indices) else ()):
                losses[k, c] = worker.kernel.loss(row, worker.reader, rows)
        return losses

    def gradients(self, models: Tensor, samples: Sequence[np.ndarray]) -> Tensor:
        """Compute the gradients [K, M] of devices' mean losses, in evaluation mode; 0 for a device without samples.

        Args:
            models: one model for all devices [M + Q], or one per device [K, M + Q].
        """
        found = models.new_zeros(len(samples), self.layout.parameters.size)
        module = self._module.eval()
        for row, model, own in zip(found, models.expand(len(samples), -1), samples, strict=True):
            if len(own):
                rows = torch.from_numpy(own).to(models.device)
                row.copy_(whole_gradient(module, self.layout, model, self._train, rows)[1])
        return found

    @property
    def state_size(self) -> int:
        """The length of the optimiser state that a device keeps, including the number of steps; 0 without a state."""
        vectors, kept = self._rule.optimiser.vectors, self._rule.optimiser.state == "kept"
        return vectors * self.layout.parameters.size + 1 if kept and vectors else 0

    def travel(self, steps: np.ndarray) -> np.ndarray:
        """Return the sum of the gradients' weights in each device's change [K], as `UpdateRule.travel` does."""
        return self._rule.travel(steps)

    def chunk(self, batch: int) -> int:
        """Return the number of stacked devices that fit the memory for a chunk, given the batch size."""
        # values in memory: the model, its gradients twice, and the optimiser's state
        models = self.layout.size + (2 + self._rule.optimiser.vectors) * self.layout.parameters.size
        bytes_per_device = 4 * (models + batch * self._numbers_per_sample)
        return max(1, self._memory_bytes // bytes_per_device)

    def _run(self, kind: type[Kernel], task: LocalTask, models: LocalModels) -> None:
        workers = self._workers_with(kind, self._pool.count)

        def train(hand: int, positions: Sequence[int]) -> None:
            ChunkTraining(workers[hand], task, self._rule, models).run(positions)

        size = kind.at_once or self.chunk(task.batches.rows.shape[2])
        self._pool.work(train, list(_cut(task.batches, size)))

    def _kind(self, task: LocalTask) -> type[Kernel]:
        written = self._model.writes_out_terms() if task.has_terms() else self._model.writes_out()
        if written and of_cross_entropy(self._task) and not self._bf16:
            return ByHand
        way: Any = self._batching
        if way == "auto":
            count, _, batch = task.batches.rows.shape
            together = min(count, self.chunk(batch))
            way = choose(self._module, together, self._train.x.device)
            if way == "stacked" and self._stacking_refused(terms=task.has_terms()):
                way = "sequential"
        return Stacked if way == "stacked" else OneByOne

    def _stacking_refused(self, *, terms: bool) -> EdgeflError | None:
        """Return the error if devices with this model cannot be trained stacked, or None.

        Args:
            terms: whether the local loss has extra terms.
        """
        if terms not in self._refusals:
            self._refusals[terms] = self._try_stacked(terms)
        return self._refusals[terms]

    def _try_stacked(self, terms: bool) -> EdgeflError | None:
        if self._draws:
            return _not_stacked("it draws random numbers in training, apart from nn.Dropout on samples")
        try:
            refuse_hidden_parameters(self._module, example(self._train.x))
            try_step(self._kernel(Stacked), self._module, self._train, devices=2, terms=terms)
        except EdgeflError as error:
            return error
        except Exception as error:  # vmap and foreign modules may raise anything
            return _not_stacked(clipped(str(error), 300))
        return None

    @cached_property
    def _numbers_per_sample(self) -> int:
        """The number of values that a sample has in memory: its input, and the values that autograd keeps."""
        inputs = int(np.prod(self._train.x.shape[1:]))
        if self._model.writes_out() and of_cross_entropy(self._task):
            return inputs
        return inputs + numbers_kept(self._module, example(self._train.x))

    def _buffer(self, name: str, count: int, like: Tensor, anew: bool) -> Tensor:
        if anew:
            return like.new_empty(count, self.layout.size)
        rows = self._buffers.get(name)
        if rows is None or len(rows) < count or rows.device != like.device:
            rows = self._buffers[name] = like.new_empty(count, self.layout.size)
        return rows[:count]

    def _workers_with(self, kind: type[Kernel], count: int) -> list[Worker]:
        """Return `count` workers with kernels of this kind; create those that do not exist yet."""
        workers = self._workers.setdefault(kind, [])
        while len(workers) < count:
            workers.append(Worker(self._kernel(kind), self._train))
        return workers[:count]

    def _kernel(self, kind: type[Kernel]) -> Kernel:
        sample = example(self._train.x)
        return kind(self._model, self._module, self._bf16, sample, self._task, self._draws)


def _not_stacked(why: str) -> EdgeflError:
    return EdgeflError(
        f"devices with this model cannot be trained stacked ({why}); choose batching: sequential",
        ("learning", "local", "batching"),
    )


def _cut(batches: Batches, size: int) -> Iterator[list[int]]:
    """Yield the devices' positions in chunks, sorted by decreasing number of steps, then by position."""
    order = np.argsort(-batches.steps, kind="stable").tolist()
    for begin in range(0, len(order), size):
        yield order[begin : begin + size]
