"""Multinomial logistic regression (softmax regression)."""

from math import prod
from typing import ClassVar

import torch
from torch import Tensor, nn

from edgefl.learning.models import Model
from edgefl.learning.parameters import Layout


class Logistic(Model):
    """One linear layer on the flattened input: 7,850 parameters for 28x28 inputs and 10 classes.

    Source: the journal paper, Table I (MNIST, Fashion-MNIST).
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), classes))

    def gradients(
        self, module: nn.Module, layout: Layout, rows: Tensor, x: Tensor, y: Tensor, weight: Tensor
    ) -> Tensor:
        # d loss / d logits = weight (softmax - onehot), and the chain rule by hand: no autograd graph for a
        # layer this small. Logits lie as [k, classes, B]: with weights kept [classes, inputs] both products
        # run in BLAS's fast orientation, and the softmax over a strided axis vectorises over the batch.
        x = x.flatten(2)
        views = layout.views(rows)
        weights, bias = views["1.weight"], views["1.bias"]
        delta = torch.baddbmm(bias.unsqueeze(2), weights, x.transpose(1, 2)).softmax(1)
        delta.scatter_add_(1, y.unsqueeze(1), delta.new_full((1, 1, 1), -1.0).expand(len(y), 1, y.shape[1]))
        delta.mul_(weight.unsqueeze(1))
        result = torch.empty_like(rows)
        parts = layout.views(result)
        torch.bmm(delta, x, out=parts["1.weight"])
        torch.sum(delta, 2, out=parts["1.bias"])
        return result
