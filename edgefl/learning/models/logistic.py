"""Multinomial logistic regression (softmax regression)."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, ClassVar

from edgefl.learning.models import ChunkOfDevices, Model, ReadSome, Size, Stepper

if TYPE_CHECKING:
    from torch import Tensor, nn


class Logistic(Model):
    """One linear layer on the flattened input, with 7,850 parameters for 28x28 inputs and 10 classes.

    Representation: the logits. Source: the journal paper, Table I (MNIST, Fashion-MNIST).
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10
    leaves_out_padding: ClassVar = True

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        from torch import nn

        return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), classes))

    def stepper(self, chunk: ChunkOfDevices) -> Stepper:
        from edgefl.learning.models import _logistic_steps

        return _logistic_steps.LogisticSteps(chunk)

    def logits(
        self,
        tensors: Mapping[str, Tensor],
        count: int,
        read: ReadSome,
        scaling: tuple[float, float],
    ) -> Tensor:
        from edgefl.learning.models._logistic_steps import logits_of

        weights, bias = tensors.values()
        return logits_of(weights, bias, count, read, scaling)

    def hidden_widths(self) -> tuple[int, ...]:
        return ()

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size:
        weights = prod(input_shape) * classes
        # one matrix product in the forward pass, and one for the weights' gradient
        return Size(weights + classes, flops_per_sample=4 * weights)
