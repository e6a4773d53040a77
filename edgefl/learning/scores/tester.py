"""Run models on test samples, block by block."""

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.func import functional_call

from edgefl.learning.data.data_in_memory import SampleReader, SplitInMemory
from edgefl.learning.models import Model
from edgefl.learning.modules.convolutions import images_at_once, read_channels_last, wants_channels_last
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.thread_pool import ThreadPool

# Maximum number of samples in a block, and in a block with hand-written logits. Both limits bound memory; results
# depend on them only through rounding.
BATCH, BATCH_WRITTEN = 1024, 2560
KEPT = 2  # number of cached results: one on test data, and one on validation data
Found = TypeVar("Found")


class ModelTester:
    """Run models on samples, several blocks at a time; neither blocks nor results depend on the number of threads.

    Args:
        model: the object that builds the module, and may compute logits with its own code.
        module: the model's module, on the torch device, in evaluation mode.
        pool: threads that test blocks at the same time; a single thread on a GPU.
    """

    def __init__(self, model: Model, module: nn.Module, pool: ThreadPool) -> None:
        self._model = model
        self._modules = [module]
        torch_device = next(module.parameters()).device
        if wants_channels_last(model.channels_last_gain, torch_device, "tests"):
            self._modules = [_with_same_tensors(module)]  # a copy, since the original keeps its memory order
            read_channels_last(self._modules[0])
        self._pool = pool
        self._found: dict[Hashable, tuple[Tensor, object]] = {}
        self.layout = ModelLayout.of(module)

    @torch.no_grad()
    def run(
        self,
        model: Tensor,
        data: SplitInMemory,
        rows: Tensor,
        find: Callable[[Tensor, Tensor], Found],
        ready: Tensor | None = None,
    ) -> list[Found]:
        """Run a model on samples; return the results of `find` on each block's outputs and targets [B, ...].

        Args:
            model: the model's vector, [M + Q].
            rows: [n] indices of samples.
            find: thread-safe function of outputs and targets.
            ready: [n, *shape] the samples' normalised inputs, or None if these inputs are not cached.
        """
        size = BATCH_WRITTEN
        if not self._model.writes_logits():
            size = images_at_once(self._modules[0], data.x.shape, BATCH)
        blocks = range(0, len(rows), size)
        found: list[Found | None] = [None] * len(blocks)
        busy = min(self._pool.count, len(blocks))
        readers = data.readers(busy)
        # a module for each thread, since a call with other parameters changes the module during the call
        while len(self._modules) < busy:
            self._modules.append(_with_same_tensors(self._modules[0]))

        @torch.no_grad()  # again, since no_grad applies to one thread only
        def test(hand: int, begin: int) -> None:
            some = rows[begin : begin + size]
            if self._model.writes_logits():
                outputs = self._written(model, readers[hand], some)
            else:
                x = readers[hand].normalised(some) if ready is None else ready[begin : begin + size]
                outputs = functional_call(self._modules[hand], self.layout.views(model), (x,))
            found[begin // size] = find(outputs, data.y[some])

        self._pool.work(test, blocks)
        return [one for one in found if one is not None]

    def of_labels(
        self,
        model: Tensor,
        data: SplitInMemory,
        labels: Sequence[int],
        find: Callable[[Tensor, Tensor], Found],
    ) -> list[Found]:
        """Run a model on all samples with one of these labels; return the results of `find` as `run` does."""
        ready = None if self._model.writes_logits() else data.ready(labels)
        return self.run(model, data, data.with_labels(labels), find, ready)

    def evaluate(self, model: Tensor, test: SplitInMemory, labels: Sequence[int]) -> tuple[float, float]:
        """Return a model's [M + Q] score, by its task, and its mean loss on the samples with one of these labels."""
        task = test.task

        def sums(outputs: Tensor, y: Tensor) -> tuple[float, float, int]:
            return task.total(outputs, y), float(task.loss(outputs, y, "sum")), len(y)

        blocks = self.of_labels(model, test, labels, sums)
        score, loss, count = (sum(column) for column in zip(*blocks, strict=True))
        return score / count, loss / count

    def once(self, model: Tensor, about: Hashable, find: Callable[[], Found]) -> Found:
        """Return the result of `find` for a model, cached as long as the model does not change.

        The cache can save a test when a session opens with the previous session's last model.

        Args:
            model: the model's vector [M + Q], which is never changed in place.
            about: key under which the result is cached, which identifies `find` and its samples.
        """
        before = self._found.pop(about, None)
        found: Any = find() if before is None or not torch.equal(before[0], model) else before[1]
        self._found[about] = model, found
        if len(self._found) > KEPT:
            del self._found[next(iter(self._found))]
        return found

    def _written(self, model: Tensor, reader: SampleReader, rows: Tensor) -> Tensor:
        begin = int(rows[0])
        as_they_lie = torch.equal(rows, torch.arange(begin, begin + len(rows), device=rows.device))

        def read(first: int, end: int) -> Tensor:
            if not reader.scaling:
                return reader.normalised(rows[first:end])
            if as_they_lie:
                return reader.raw_between(begin + first, begin + end)
            return reader.raw(rows[first:end])

        return self._model.logits(self.layout.views(model), len(rows), read, reader.scaling or (0.0, 1.0))


def _with_same_tensors(module: nn.Module) -> nn.Module:
    shared = {id(one): one for one in (*module.parameters(), *module.buffers())}
    return copy.deepcopy(module, shared)
