"""Multinomial logistic regression (softmax regression)."""

from math import prod
from typing import ClassVar

import torch
from torch import Tensor, nn

from edgefl.learning.models import Model, Outputs, Push
from edgefl.learning.parameters import Layout

UNSCALED = (0.0, 1.0)


class Logistic(Model):
    """One linear layer on the flattened input: 7,850 parameters for 28x28 inputs and 10 classes.

    Representation: the logits. Source: the journal paper, Table I (MNIST, Fashion-MNIST).
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10
    takes_raw_inputs: ClassVar = True

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), classes))

    def gradients(
        self,
        module: nn.Module,
        layout: Layout,
        rows: Tensor,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        push: Push | None = None,
        scaling: tuple[float, float] = UNSCALED,
    ) -> Tensor:
        """As the base, for inputs (x - mean) scale with scaling = (mean, scale), and with further terms."""
        # d loss / d logits = weight (softmax - onehot), and the chain rule by hand: no autograd graph for a
        # layer this small. Logits lie as [k, classes, B]: with weights kept [classes, inputs] both products
        # run in BLAS's fast orientation, and the softmax over a strided axis vectorises over the batch.
        mean, scale = scaling
        logits = self.logits(layout, rows, x, scaling)
        delta = logits.softmax(1)
        delta.scatter_add_(1, y.unsqueeze(1), delta.new_full((1, 1, 1), -1.0).expand(len(y), 1, y.shape[1]))
        delta.mul_(weight.unsqueeze(1))
        if push is not None:
            own = logits.transpose(1, 2)
            for gradient in push(Outputs(own, own)):
                delta.add_(gradient.transpose(1, 2))
        result = torch.empty_like(rows)
        weights, bias = layout.views(result).values()
        torch.sum(delta, 2, out=bias)
        # sum_b delta_b (x_b - mean) scale: the mean's part is the bias's gradient for every input
        offset = (bias * (-mean * scale)).unsqueeze(2)
        torch.baddbmm(offset, delta, x.flatten(2), alpha=scale, out=weights)
        return result

    def logits(self, layout: Layout, rows: Tensor, x: Tensor, scaling: tuple[float, float]) -> Tensor:
        """[k, classes, B] of models [k, M] and inputs (x - mean) scale."""
        mean, scale = scaling
        weights, bias = layout.views(rows).values()
        offset = bias - (mean * scale) * weights.sum(2) if mean else bias
        return torch.baddbmm(offset.unsqueeze(2), weights, x.flatten(2).transpose(1, 2), alpha=scale)
