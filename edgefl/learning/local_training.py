"""Local SGD of a round's devices, in chunks; momentum and batches are each device's own."""

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from edgefl.errors import EdgeflError
from edgefl.learning.algorithms import Algorithm, ServerState
from edgefl.learning.batches import Batches
from edgefl.learning.data_in_memory import Reader, SplitInMemory
from edgefl.learning.gradients import ByHand, ChunkBatches, Kernel, OneByOne, Precision, Stacked
from edgefl.learning.models import Model, OutputTerm
from edgefl.learning.parameters import ModelLayout

Batching = Literal["auto", "stacked", "sequential"]

# What a chunk of stacked devices may occupy. On a CPU the batch and the models should stay in the cache: 5 MB
# are ten devices of logistic regression on 28x28 images, and 100 at once are slower than one by one. A GPU
# wants much work per launch.
CPU_CHUNK_BYTES = 5_500_000
CUDA_CHUNK_SHARE = 0.125
# `auto` leaves a kind of processor's usual way only for one that is faster by this factor: a choice by a
# hair would differ from run to run, and with it the rounding.
CLEARLY_FASTER = 1.25
MEASURED_DEVICES = 4
EXAMPLES = 2  # of the batch that shows a module its shapes; batch norm wants more than one


@dataclass(frozen=True)
class LocalTask:
    """Local training of a round's K devices; they are meant by their position 0 to K-1.

    start: [M + Q] the model that all received, or [K, M + Q].
    own: of some devices, their own vectors, [k, M] each.
    previous: of some devices, their last local models, [k, M + Q].
    terms: further terms of the local loss.
    """

    start: Tensor
    batches: Batches
    lr: float
    algorithm: Algorithm
    state: ServerState = field(default_factory=dict)
    own: Callable[[Sequence[int]], Mapping[str, Tensor]] = lambda devices: {}
    previous: Callable[[Sequence[int]], Tensor] | None = None
    terms: Sequence[OutputTerm] = ()

    def received(self, devices: Sequence[int]) -> Tensor:
        """[M + Q], or [k, M + Q] where they differ."""
        return self.start if self.start.dim() == 1 else self.start[list(devices)]

    def has_terms(self) -> bool:
        """Whether the local loss has terms of the outputs."""
        return bool(self.terms) or type(self.algorithm).term is not Algorithm.term

    def terms_of(self, devices: Sequence[int]) -> list[OutputTerm]:
        """All terms of the outputs, with references for these devices."""
        previous = self.previous(devices) if self.previous else None
        own = self.algorithm.term(self.received(devices), previous)
        return [*self.terms, *([own] if own else [])]

    def first_step_of(self, devices: Sequence[int]) -> "LocalTask":
        """The same for some of the devices, and no further than one step."""
        batches, own, previous = self.batches, self.own, self.previous

        def among(positions: Sequence[int]) -> list[int]:
            return [devices[k] for k in positions]

        return replace(
            self,
            start=self.received(devices),
            batches=Batches(
                batches.rows[devices, :1],
                batches.weights[devices, :1],
                batches.sizes[devices, :1],
                np.minimum(batches.steps[devices], 1),
                batches.seeds[devices],
            ),
            own=lambda positions: own(among(positions)),
            previous=None if previous is None else lambda positions: previous(among(positions)),
        )


class _Worker:
    """What one thread needs: a kernel with its own module, a reader, and room for a chunk."""

    def __init__(self, kernel: Kernel, train: SplitInMemory) -> None:
        self.kernel = kernel
        self.reader = Reader(train)
        self._rows = self._velocity = torch.empty(0, 0)

    def room(self, count: int, like: Tensor) -> tuple[Tensor, Tensor]:
        """[count, M + Q] for local models and [count, M] for their velocities, reused."""
        if len(self._rows) < count or self._rows.device != like.device:
            self._rows = like.new_empty(count, self.kernel.layout.size)
            self._velocity = like.new_empty(count, self.kernel.layout.parameters.size)
        return self._rows[:count], self._velocity[:count]


class LocalTraining:
    """Trains the participants of a round: SGD with momentum, restarted for every device and round.

    The result is the same whatever the number of threads: devices are cut into the same chunks, and each
    chunk is computed by one thread.

    Args:
        model: the model; one that writes its gradients out is trained by these in float32.
        module: the model's module, on the torch device.
        momentum: rho.
        batching: `stacked` takes the devices of a chunk together, `sequential` one after the other; `auto`
            measures one step of both, when it is first needed or by `choose`, and keeps the usual way, stacked
            on a GPU and sequential on a CPU, unless the other is clearly faster.
        memory_bytes: room for a chunk of stacked devices; none: an eighth of a GPU, a CPU's cache.
        threads: chunks in work at the same time; on a GPU one.
    """

    def __init__(
        self,
        model: Model,
        module: nn.Module,
        train: SplitInMemory,
        momentum: float,
        *,
        batching: Batching = "auto",
        precision: Precision | None = None,
        memory_bytes: int | None = None,
        threads: int = 1,
    ) -> None:
        self._model = model
        self._module = module
        self._train = train
        self._momentum = momentum
        self._batching = batching
        self._precision = precision or Precision()
        self._torch_device = train.x.device
        self._threads = 1 if self._torch_device.type == "cuda" else threads
        self._pool = (
            ThreadPoolExecutor(threads - 1, initializer=_one_thread_each) if self._threads > 1 else None
        )
        self._memory_bytes = memory_bytes or _chunk_bytes(self._torch_device)
        self._workers: dict[type[Kernel], list[_Worker]] = {}
        self._result = torch.empty(0, 0)
        self.layout = ModelLayout.of(module)
        self.chosen: type[Kernel] | None = None  # how models without gradients of their own are trained
        if self._precision.bf16 and self._torch_device.type == "cpu":
            self._refuse_wrong_gradients()
        # what a batch must have at least
        self.smallest_batch = 2 if any(isinstance(part, _BatchNorm) for part in module.modules()) else 1

    @torch.no_grad()
    def run(self, work: LocalTask) -> Tensor:
        """[K, M + Q] local models; the next call overwrites them.

        A device that does no step keeps what it received.

        Raises:
            EdgeflError: `learning.batching` asks for a way that this model cannot go.
        """
        count = len(work.batches.rows)
        if len(self._result) < count or self._result.device != work.start.device:
            self._result = work.start.new_empty(count, self.layout.size)
        result = self._result[:count]
        kind = self._kind(work)
        try:
            return self._run(kind, work, result)
        except (RuntimeError, NotImplementedError) as error:
            if kind is not Stacked:
                raise
            raise EdgeflError(
                f"devices with this model cannot be trained stacked ({error}); choose sequential",
                ("learning", "batching"),
            ) from error

    def choose(self, work: LocalTask) -> Literal["stacked", "sequential"] | None:
        """How devices will be trained, measured with this work if need be.

        None: this model's gradients are written out, so there is nothing to choose.
        """
        kind = self._kind(work)
        return None if kind is ByHand else "stacked" if kind is Stacked else "sequential"

    def _run(self, kind: type[Kernel], work: LocalTask, result: Tensor) -> Tensor:
        chunks = iter(list(self._chunks(work.batches, kind)))

        def train(worker: _Worker) -> None:
            for chunk in chunks:  # whoever is free takes the next
                self._train_chunk(worker, work, chunk, result)

        own, *others = self._workers_of(kind, self._threads)
        waiting = [self._pool.submit(train, worker) for worker in others] if self._pool else []
        train(own)
        for done in waiting:
            done.result()
        return result

    @torch.no_grad()
    def _train_chunk(self, worker: _Worker, work: LocalTask, devices: list[int], result: Tensor) -> None:
        """Train some devices, those with the most steps first, into their rows of the result."""
        batches, train, algorithm = work.batches, self._train, work.algorithm
        rows, velocity = worker.room(len(devices), result)
        received = work.received(devices)
        rows.copy_(received)
        velocity.zero_()
        (local, _), (start, _) = self.layout.split(rows), self.layout.split(received)
        own = work.own(devices)
        # a step's batches lie together: [steps, k, B]
        samples = torch.from_numpy(batches.rows[devices].swapaxes(0, 1)).to(self._torch_device).contiguous()
        weight = torch.from_numpy(batches.weights[devices].swapaxes(0, 1)).to(self._torch_device).contiguous()
        masked = devices if worker.kernel.dropout else ()
        gradients = worker.kernel.start(
            rows,
            ChunkBatches(
                worker.reader,
                samples,
                train.y.take(samples),
                weight,
                batches.sizes[devices].T.tolist(),
                [torch.Generator().manual_seed(int(batches.seeds[k])) for k in masked],
            ),
            work.terms_of(devices),
        )
        steps = batches.steps[devices]
        for step in range(int(steps[0])):
            active = int((steps > step).sum())
            if active < len(local):  # views: the others have done their last step
                local, velocity = local[:active], velocity[:active]
                start = start if start.dim() == 1 else start[:active]
                own = {name: vector[:active] for name, vector in own.items()}
            grads = algorithm.correct(gradients(step, active), local, start, work.state, own)
            torch.add(grads, velocity, alpha=self._momentum, out=velocity)
            local.sub_(velocity, alpha=work.lr)
        first, last = devices[0], devices[-1]
        result[slice(first, last + 1) if devices == list(range(first, last + 1)) else devices] = rows

    def travel(self, steps: np.ndarray) -> np.ndarray:
        """[K] what a step's gradients weigh, summed over the steps: see `algorithms.Updates`."""
        rho = self._momentum
        left = np.arange(1, max(1, int(steps.max(initial=1))) + 1)
        weights = (1 - rho**left) / (1 - rho)
        return np.concatenate([[0.0], np.cumsum(weights)])[steps]

    def _kind(self, work: LocalTask) -> type[Kernel]:
        written = self._model.writes_out()
        if written and not self._precision.bf16 and (written == "stepper" or not work.has_terms()):
            return ByHand
        if self._batching != "auto":
            return Stacked if self._batching == "stacked" else OneByOne
        if self.chosen is None:
            self.chosen = self._measure(work)
        return self.chosen

    def _measure(self, work: LocalTask) -> type[Kernel]:
        """One step of some devices both ways, the second of two tries each."""
        usual, other = (Stacked, OneByOne) if self._torch_device.type == "cuda" else (OneByOne, Stacked)
        able = [k for k in range(len(work.batches.rows)) if work.batches.steps[k]][:MEASURED_DEVICES]
        if not able:
            return usual
        took_s = {}
        for kind in (usual, other):
            try:
                with warnings.catch_warnings():  # that a layer is slow under vmap is what is measured here
                    warnings.filterwarnings("ignore", "There is a performance drop")
                    took_s[kind] = self._time_a_step(kind, work, able)
            except (RuntimeError, NotImplementedError):
                if kind is OneByOne:
                    raise  # this way always goes: the model itself is broken
        if usual not in took_s:
            return other
        return other if other in took_s and took_s[usual] > CLEARLY_FASTER * took_s[other] else usual

    def _time_a_step(self, kind: type[Kernel], work: LocalTask, devices: list[int]) -> float:
        worker = self._workers_of(kind, 1)[0]
        trial = work.first_step_of(devices)
        result = work.start.new_empty(len(devices), self.layout.size)
        took_s = 0.0
        for _ in range(2):
            began = time.perf_counter()
            for chunk in self._chunks(trial.batches, kind):
                self._train_chunk(worker, trial, chunk, result)
            finish(self._torch_device)
            took_s = time.perf_counter() - began
        return took_s

    def _chunks(self, batches: Batches, kind: type[Kernel]) -> Iterator[list[int]]:
        """Devices by falling number of steps, else in order, cut into chunks; their places do not change."""
        order = np.argsort(-batches.steps, kind="stable").tolist()
        size = kind.at_once or self.chunk(batches.rows.shape[2])
        for begin in range(0, len(order), size):
            yield order[begin : begin + size]

    def chunk(self, batch: int) -> int:
        """Stacked devices that fit the memory for a chunk."""
        models = self.layout.size + 3 * self.layout.parameters.size  # model, velocity, gradients twice
        one = 4 * (models + batch * self._numbers_per_sample())
        return max(1, self._memory_bytes // one)

    def _numbers_per_sample(self) -> int:
        """Inputs, and what autograd keeps of a sample."""
        inputs = int(np.prod(self._train.x.shape[1:]))
        return inputs if self._model.writes_out() else inputs + self._kept_per_sample

    @cached_property
    def _kept_per_sample(self) -> int:
        """Numbers of each layer's output and its gradient."""
        counted: list[int] = []
        self._look(lambda part, inputs, output: counted.append(output.numel()))
        return 2 * sum(counted) // EXAMPLES

    def _refuse_wrong_gradients(self) -> None:
        """oneDNN, as of PyTorch 2.13: weight gradients in bfloat16 read foreign memory for such a layer."""
        wrong: list[nn.Module] = []

        def note(part: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if not isinstance(part, nn.Conv2d) or inputs[0].shape[2:].numel() > 1:
                return
            if max(part.stride) > 1 and max(part.kernel_size) > 1:
                wrong.append(part)

        self._look(note)
        if wrong:
            raise EdgeflError(
                f"bf16 gives wrong gradients on a CPU for a convolution with strides on a single pixel ({wrong[0]}): "
                "choose float32, or larger images",
                ("learning", "precision"),
            )

    @torch.no_grad()
    def _look(self, seen: Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]) -> None:
        """Run an example through the module in evaluation mode; `seen` gets each layer with its input and output."""
        hooks = [
            part.register_forward_hook(seen) for part in self._module.modules() if not list(part.children())
        ]
        training = self._module.training
        self._module.eval()(self._example())
        self._module.train(training)
        for hook in hooks:
            hook.remove()

    def _example(self) -> Tensor:
        return torch.zeros(EXAMPLES, *self._train.x.shape[1:], device=self._torch_device)

    def _workers_of(self, kind: type[Kernel], count: int) -> list[_Worker]:
        workers = self._workers.setdefault(kind, [])
        while len(workers) < count:
            kernel = kind(self._model, self._module, self._precision, self._example())
            workers.append(_Worker(kernel, self._train))
        return workers


def finish(torch_device: torch.device) -> None:
    """Wait for what has been launched on a GPU, before a clock is read."""
    if torch_device.type == "cuda":
        torch.cuda.synchronize(torch_device)


def _one_thread_each() -> None:
    torch.set_num_threads(1)


def _chunk_bytes(torch_device: torch.device) -> int:
    if torch_device.type == "cuda":
        return int(CUDA_CHUNK_SHARE * torch.cuda.get_device_properties(torch_device).total_memory)
    return CPU_CHUNK_BYTES
