"""Multinomial logistic regression (softmax regression)."""

from collections.abc import Callable, Sequence
from math import prod
from typing import ClassVar

import torch
from torch import Tensor, nn

from edgefl.learning.models import Model, Outputs, Push
from edgefl.learning.parameters import Layout


class Logistic(Model):
    """One linear layer on the flattened input: 7,850 parameters for 28x28 inputs and 10 classes.

    Representation: the logits. Source: the journal paper, Table I (MNIST, Fashion-MNIST).
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), classes))

    def stepper(
        self,
        layout: Layout,
        rows: Tensor,
        y: Tensor,
        weight: Tensor,
        scaling: tuple[float, float],
        references: Sequence[Sequence[Tensor]],
        push: Push | None,
    ) -> Callable[[int, int, Tensor], Tensor]:
        return _Steps(layout, rows, y, weight, scaling, references, push)


class _Steps:
    """Gradients by hand: delta = weight (softmax - onehot) by logits, then the chain rule.

    Logits lie as [k, classes, B]: with weights kept [classes, inputs] both products run in BLAS's fast
    orientation, and the softmax over a strided axis vectorises over the batch. Inputs stay raw: their
    scaling (x - mean) s is linear too, so it is worked into the products. Buffers and views are made once
    for all steps, for beside two products of 0.3 ms each every further call would show.
    """

    def __init__(
        self,
        layout: Layout,
        rows: Tensor,
        y: Tensor,
        weight: Tensor,
        scaling: tuple[float, float],
        references: Sequence[Sequence[Tensor]],
        push: Push | None,
    ) -> None:
        steps, count, batch = y.shape
        mean, self._scale = scaling
        self._shift = -mean * self._scale
        self._layout = layout
        self._references = references
        self._push = push
        self._rows = rows
        self._gradient = torch.empty_like(rows)
        self._weights, self._bias = layout.views(rows).values()
        self._by_weights, self._by_bias = layout.views(self._gradient).values()
        classes = self._bias.shape[1]
        self._logits = rows.new_empty(count, classes, batch)
        self._delta = torch.empty_like(self._logits)
        self._offset = torch.empty_like(self._bias)
        self._x = self._flat = self._turned = rows.new_empty(0)
        # weight and weight x onehot of each step, to be multiplied with and subtracted
        each = weight.unsqueeze(2)
        hot = rows.new_zeros(steps, count, classes, batch).scatter_(2, y.unsqueeze(2), each)
        self._weight, self._hot = each.unbind(), hot.unbind()

    def __call__(self, step: int, active: int, x: Tensor) -> Tensor:
        if active < len(self._rows):
            self._keep(active)
        if x is not self._x:  # mostly the same buffer with new content
            self._x, self._flat = x, x.flatten(2)
            self._turned = self._flat.transpose(1, 2)
        weight, hot = self._weight[step], self._hot[step]
        if active < len(weight):
            weight, hot = weight[:active], hot[:active]
        logits = self._outputs(self._weights, self._bias, self._logits)
        torch.softmax(logits, 1, out=self._delta)
        self._delta.mul_(weight).sub_(hot)
        if self._push is not None:
            others = [
                [
                    _outputs(self._outputs(*self._parts(rows, active), torch.empty_like(logits)))
                    for rows in models
                ]
                for models in self._references
            ]
            for gradient in self._push(_outputs(logits), others, weight[:, 0]):
                self._delta.add_(gradient.transpose(1, 2))
        torch.sum(self._delta, 2, out=self._by_bias)
        # sum_b delta_b (x_b - mean) s: the mean's part is the bias's gradient, for every input
        torch.mul(self._by_bias, self._shift, out=self._offset)
        offset = self._offset.unsqueeze(2)
        torch.baddbmm(offset, self._delta, self._flat, alpha=self._scale, out=self._by_weights)
        return self._gradient

    def _outputs(self, weights: Tensor, bias: Tensor, out: Tensor) -> Tensor:
        """Logits [k, classes, B]."""
        offset = bias
        if self._shift:
            offset = torch.add(bias, weights.sum(2), alpha=self._shift)
        return torch.baddbmm(offset.unsqueeze(2), weights, self._turned, alpha=self._scale, out=out)

    def _parts(self, rows: Tensor, active: int) -> tuple[Tensor, Tensor]:
        """Weights and bias of reference models [M] or [k, M]."""
        weights, bias = self._layout.views(rows if rows.dim() == 1 else rows[:active]).values()
        return weights.expand(active, *weights.shape[-2:]), bias.expand(active, -1)

    def _keep(self, active: int) -> None:
        """The first devices go on."""
        for name in (
            "rows",
            "gradient",
            "weights",
            "bias",
            "by_weights",
            "by_bias",
            "logits",
            "delta",
            "offset",
        ):
            setattr(self, f"_{name}", getattr(self, f"_{name}")[:active])


def _outputs(logits: Tensor) -> Outputs:
    logits = logits.transpose(1, 2)
    return Outputs(logits, logits)
