"""Compute gradients of many devices in one of three ways: by hand-written code, stacked under vmap, or one by one."""

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.func import grad, vmap
from torch.nn.modules.batchnorm import _BatchNorm

from edgefl.learning.data.data_in_memory import SampleReader
from edgefl.learning.local.batching import RECURRENT
from edgefl.learning.local.terms import pushed, run, weighted
from edgefl.learning.models import ChunkOfDevices, Model, Outputs, OutputTerm
from edgefl.learning.modules.convolutions import images_at_once, read_channels_last, wants_channels_last
from edgefl.learning.modules.layers import hand_in_dropout
from edgefl.learning.modules.parameters import ModelLayout
from edgefl.learning.modules.randomness import seeded
from edgefl.learning.objective import CLASSIFICATION
from edgefl.learning.tasks import Task

TESTED_AT_ONCE = 2048  # number of samples; bounds memory
# On a CPU, hand-written products leave out padding, in multiples of 16 samples, if inputs have at least 256 values
# and batches at most 128 samples. For other sizes BLAS chooses its kernel by the width, and rounds differently.
NARROWED_BY, NARROWED_FROM, NARROWED_UP_TO = 16, 256, 128
# (step, active) -> gradients [active, M] of the first devices of a chunk
GradientSteps = Callable[[int, int], Tensor]


@dataclass(frozen=True)
class Batch:
    """A mini-batch of each of k devices on the torch device; with a leading dimension [steps], one per step.

    samples: indices into the data [k, B]; 0 for padding.
    weight: weights [k, B] that sum to one per device; 0 for padding.
    sizes: how many samples each device's batch has, not counting the padding that follows them.
    generators: generator of each device's random numbers in training, if the model draws any.
    views: view of each sample [k, B], or None without augmentation.
    """

    reader: SampleReader
    samples: Tensor
    y: Tensor
    weight: Tensor
    sizes: Any
    generators: Sequence[torch.Generator]
    views: Tensor | None = None

    def at(self, step: int, active: int) -> "Batch":
        """Return the mini-batches of the first `active` devices in one step."""
        return Batch(
            self.reader,
            self.samples[step, :active],
            self.y[step, :active],
            self.weight[step, :active],
            self.sizes[step][:active],
            self.generators[:active],
            None if self.views is None else self.views[step, :active],
        )

    def inputs(self, size: int | None = None) -> Tensor:
        """Return the normalised inputs [k, B, ...] of the first `size` samples; the next call overwrites them."""
        views = None if self.views is None else self.views[:, :size]
        return self.reader.normalised(self.samples[:, :size], views)


class Kernel(ABC):
    """Base class of the three ways to compute a chunk's gradients, each with a copy of the module for its thread.

    Batch statistics are updated in place, as in training mode.

    Args:
        draws: whether the module draws from PyTorch's generators in training, besides handed dropout masks.
    """

    # number of devices in one call; None: as many as fit memory
    at_once: ClassVar[int | None] = None

    def __init__(
        self,
        model: Model,
        module: nn.Module,
        bf16: bool,
        example: Tensor,
        task: Task = CLASSIFICATION,
        draws: bool = False,
    ) -> None:
        self.task = task
        self.draws = draws
        self.model = model
        self.module = copy.deepcopy(module)
        self.layout = ModelLayout.of(module)
        self._bf16, self._torch_device = bf16, example.device
        self._recurrent = any(isinstance(layer, RECURRENT) for layer in self.module.modules())
        self.dropout = hand_in_dropout(self.module, example)
        self.module.train()
        self._tested_at_once = images_at_once(module, example.shape, TESTED_AT_ONCE)
        self._prepare()

    def _prepare(self) -> None:  # noqa: B027  # optional
        """Prepare the module for this kernel's way of computing gradients."""

    @property
    def needs_generators(self) -> bool:
        """Whether each device needs a random generator in training."""
        return self.draws or bool(self.dropout)

    def start(self, rows: Tensor, batches: Batch, terms: Sequence[OutputTerm]) -> GradientSteps:
        """Start a chunk; return a function that computes a step's gradients at the models `rows` [k, M + Q].

        The caller updates the models between steps; the number of active devices must not rise.
        """

        def gradients(step: int, active: int) -> Tensor:
            among = terms if active == len(rows) else [term.part(slice(active)) for term in terms]
            return self._gradients(rows[:active], batches.at(step, active), among)

        return gradients

    @abstractmethod
    def _gradients(self, rows: Tensor, batch: Batch, terms: Sequence[OutputTerm]) -> Tensor:
        """Compute the gradients [k, M] of k devices' losses in one step."""

    def _autocast(self, torch_device: torch.device) -> torch.autocast:
        # autocast's cache is off, since it would keep casts of parameters that change between steps
        return torch.autocast(torch_device.type, torch.bfloat16, self._bf16, cache_enabled=False)

    def _masks(self, batch: Batch) -> dict[str, Tensor]:
        """Draw dropout masks [k, B, *shape] by layer, for each device's samples from the device's generator."""
        masks = {}
        for name, layer in self.dropout.items():
            mask = torch.zeros((*batch.samples.shape, *layer.shape))
            for device_mask, size, generator in zip(mask, batch.sizes, batch.generators, strict=True):
                device_mask[:size].uniform_(generator=generator)
            masks[name] = (mask >= layer.p).to(batch.weight).div_(1 - layer.p)
        return masks

    def outputs(self, rows: Tensor, batch: Batch) -> Outputs:
        """Compute outputs [k, B, ...] of a model [M + Q], or one per device [k, M + Q], in evaluation mode."""
        x = batch.inputs()
        self.module.eval()
        with self._autocast(rows.device):
            if rows.dim() == 1:
                flat = run(self.module, self.layout.views(rows), x.flatten(0, 1))
                outputs = Outputs(*(part.unflatten(0, batch.samples.shape) for part in flat))
            elif len(rows) == 1 or self._recurrent:  # vmap supports an LSTM only with gradients
                each = [
                    run(self.module, self.layout.views(row), own) for row, own in zip(rows, x, strict=True)
                ]
                outputs = Outputs(*(torch.stack(parts) for parts in zip(*each, strict=True)))
            else:
                outputs = vmap(lambda row, x: run(self.module, self.layout.views(row), x))(rows, x)
        self.module.train()
        return Outputs(*(part.float() for part in outputs))

    def loss(self, row: Tensor, reader: SampleReader, samples: Tensor) -> Tensor:
        """Compute the mean loss [] of a model [M + Q] over samples [n], in evaluation mode."""
        self.module.eval()
        total, tensors = row.new_zeros(()), self.layout.views(row)
        with self._autocast(row.device):
            for some in samples.split(self._tested_at_once):
                logits = run(self.module, tensors, reader.normalised(some)).logits
                total += self.task.loss(logits.float(), reader.labels(some), "sum")
        self.module.train()
        return total / len(samples)

    def _references(self, terms: Sequence[OutputTerm], batch: Batch) -> list[list[Outputs]]:
        return [[self.outputs(rows, batch) for rows in term.references] for term in terms]


class ByHand(Kernel):
    """A kernel that calls the model's hand-written gradients, for all devices of a chunk at once."""

    def start(self, rows: Tensor, batches: Batch, terms: Sequence[OutputTerm]) -> GradientSteps:
        if self.model.writes_out() != "stepper":
            return super().start(rows, batches, terms)
        reader = batches.reader
        inputs = reader.raw if reader.scaling else reader.normalised
        narrows = self.model.leaves_out_padding and _narrowed(batches)
        steps = self.model.stepper(
            ChunkOfDevices(
                layout=self.layout.parameters,
                rows=rows,
                y=batches.y,
                weight=batches.weight,
                scaling=reader.scaling or (0.0, 1.0),
                references=[term.references for term in terms],
                push=partial(pushed, terms) if terms else None,
            )
        )

        def read(step: int, first: int, end: int) -> Tensor:
            width = None
            if narrows:
                width = -(-max(batches.sizes[step][first:end]) // NARROWED_BY) * NARROWED_BY
            views = None if batches.views is None else batches.views[step, first:end, :width]
            return inputs(batches.samples[step, first:end, :width], views)

        return lambda step, active: steps(step, active, read)

    def _gradients(self, rows: Tensor, batch: Batch, terms: Sequence[OutputTerm]) -> Tensor:
        at = (self.module, self.layout.parameters, rows, batch.inputs(), batch.y, batch.weight)
        return self.model.gradients(*at, terms) if terms else self.model.gradients(*at)


class Stacked(Kernel):
    """A kernel that differentiates automatically under vmap, for all devices of a chunk in one call."""

    def _prepare(self) -> None:
        if self._bf16:
            # under vmap, batch norm makes weights of the input's type, which must equal the statistics' type
            for layer in self.module.modules():
                if isinstance(layer, _BatchNorm):
                    layer.register_forward_pre_hook(lambda layer, inputs: (inputs[0].float(),))
                    layer.register_forward_hook(lambda layer, inputs, output: output.bfloat16())

    def _gradients(self, rows: Tensor, batch: Batch, terms: Sequence[OutputTerm]) -> Tensor:
        references = self._references(terms, batch)
        x = batch.inputs()
        masks = self._masks(batch)
        groups = [slice(None)] if not self.layout.statistics.names else _by_size(batch.sizes)
        result = rows.new_empty((len(rows), self.layout.parameters.size))
        for group in groups:
            # batch statistics must not include padding, so devices are grouped by their number of samples
            size = x.shape[1] if isinstance(group, slice) else batch.sizes[group[0]]
            parameters, statistics = self.layout.split(rows[group])
            with self._autocast(rows.device):
                gradients, moved = vmap(grad(partial(self._loss, terms), has_aux=True))(
                    parameters,
                    statistics,
                    x[group, :size],
                    batch.y[group, :size],
                    batch.weight[group, :size],
                    {name: mask[group, :size] for name, mask in masks.items()},
                    _first(references, group, size),
                )
            result[group] = gradients
            if self.layout.statistics.names:
                rows[group, parameters.shape[1] :] = moved
        return result

    def _loss(
        self,
        terms: Sequence[OutputTerm],
        parameters: Tensor,
        statistics: Tensor,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        masks: dict[str, Tensor],
        references: Sequence[Sequence[Outputs]],
    ) -> tuple[Tensor, Tensor]:
        moving = {name: view.clone() for name, view in self.layout.statistics.views(statistics).items()}
        counters = {name: b.clone() for name, b in self.module.named_buffers() if not b.is_floating_point()}
        tensors = {**self.layout.parameters.views(parameters), **moving, **counters, **masks}
        outputs = run(self.module, tensors, x)
        loss = (self.task.losses(outputs.logits, y) * weight).sum()
        loss = loss + weighted(terms, references, outputs, weight)
        pieces = [moving[name].reshape(-1) for name in self.layout.statistics.names]
        return loss, torch.cat(pieces) if pieces else statistics


class OneByOne(Kernel):
    """A kernel that differentiates automatically, one device after the other.

    The module's parameters are views into the device's row, so only the gradient is copied.
    """

    at_once = 1

    def _prepare(self) -> None:
        if wants_channels_last(self.model.channels_last_gain, self._torch_device, "all"):
            read_channels_last(self.module)
        named = dict(self.module.named_parameters())
        self._parameters = [named[name] for name in self.layout.parameters.names]
        self._bound: tuple[int, int] = (0, 0)
        self._gradient = torch.empty(0)

    def _gradients(self, rows: Tensor, batch: Batch, terms: Sequence[OutputTerm]) -> Tensor:
        size = batch.sizes[0]
        references = self._references(terms, batch)
        self._bind(rows[0])
        for name, mask in self._masks(batch).items():
            self.dropout[name].mask = mask[0, :size]
        x = batch.inputs(size)[0]
        y, weight = batch.y[0, :size], batch.weight[0, :size]
        drawing = seeded(batch.generators[0], rows.device) if self.draws else nullcontext()
        with drawing, torch.enable_grad(), self._autocast(rows.device):
            outputs = run(self.module, None, x)
            loss = self.task.losses(outputs.logits, y) @ weight
            if terms:
                outputs = Outputs(*(part[None] for part in outputs))
                loss = loss + weighted(terms, _first(references, slice(None), size), outputs, weight[None])
            # the gradient of a parameter that the module does not use is 0
            gradients = torch.autograd.grad(loss, self._parameters, materialize_grads=True)
        if self._gradient.device != rows.device or not len(self._gradient):
            self._gradient = rows.new_empty(self.layout.parameters.size)
        torch.cat([g.reshape(-1) for g in gradients], out=self._gradient)
        return self._gradient.unsqueeze(0)

    def _bind(self, row: Tensor) -> None:
        place = (row.data_ptr(), len(row))
        if place == self._bound:
            return
        views = self.layout.views(row)
        for name, parameter in zip(self.layout.parameters.names, self._parameters, strict=True):
            parameter.data = views[name]
        for name in self.layout.statistics.names:
            prefix, _, last = name.rpartition(".")
            self.module.get_submodule(prefix)._buffers[last] = views[name]
        self._bound = place


def _narrowed(batches: Batch) -> bool:
    """Return whether to leave out padding that all devices share: on a CPU, if inputs are large and batches small."""
    on_cpu, widest = batches.samples.device.type == "cpu", batches.samples.shape[2]
    return on_cpu and batches.reader.numbers >= NARROWED_FROM and widest <= NARROWED_UP_TO


def _first(
    references: Sequence[Sequence[Outputs]], devices: slice | list[int], size: int
) -> list[list[Outputs]]:
    """Return the reference models' outputs for the first `size` samples of some devices."""
    return [[Outputs(*(part[devices, :size] for part in one)) for one in models] for models in references]


def _by_size(sizes: Sequence[int]) -> list[list[int]]:
    groups: dict[int, list[int]] = {}
    for position, size in enumerate(sizes):
        groups.setdefault(size, []).append(position)
    return list(groups.values())
