"""Multinomial logistic regression (softmax regression)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import Field

from edgefl.learning.models import ChunkOfDevices, Model, ReadSome, Size, Stepper

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


class Logistic(Model):
    """One linear layer on the flattened input: 7,850 parameters for 28x28 inputs and 10 classes.

    Representation: the logits. Source: the journal paper, Table I (MNIST, Fashion-MNIST).
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10
    leaves_out_padding: ClassVar = True

    compiled: Literal["auto"] | bool = Field(
        "auto",
        description="gradients and tests by a function in C, made by this machine's compiler: on a CPU, where the"
        " loss is the cross-entropy alone; auto: if there is a compiler, for up to 64 classes. It rounds otherwise",
    )

    def on_this_machine(self, classes: int, torch_device: torch.device) -> Self:
        from edgefl.learning.models import _logistic_compiled as in_c

        if self.compiled == "auto":
            suits = torch_device.type == "cpu" and classes <= in_c.MOST_CLASSES and in_c.is_there()
            return self.model_copy(update={"compiled": suits})
        if self.compiled:
            in_c.require_cpu(torch_device)
            in_c.library()
        return self

    def computed_by(self) -> str:
        from edgefl.learning.compiling import version

        return f"C, compiled by {version()}" if self.compiled is True else "PyTorch"

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        from torch import nn

        return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), classes))

    def stepper(self, chunk: ChunkOfDevices) -> Stepper:
        from edgefl.learning.models import _logistic_steps

        return _logistic_steps.stepper(chunk, compiled=self.compiled is True)

    def logits(
        self,
        tensors: Mapping[str, Tensor],
        count: int,
        read: ReadSome,
        scaling: tuple[float, float],
        raw: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        from edgefl.learning.models._logistic_steps import logits_of

        weights, bias = tensors.values()
        return logits_of(weights, bias, count, read, scaling, raw, compiled=self.compiled is True)

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size:
        weights = prod(input_shape) * classes
        return Size(weights + classes, flops_per_sample=4 * weights)  # a product forward, one by the weights
