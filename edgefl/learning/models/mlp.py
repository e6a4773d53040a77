"""Fully connected networks of any depth."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import Field

from edgefl.learning.models import Model, Size

if TYPE_CHECKING:
    from torch import nn


class Mlp(Model):
    """Hidden layers with ReLU on the flattened input.

    The default is "MNIST 2NN" of McMahan et al., AISTATS 2017: two layers of 200 units, which
    have 199,210 parameters with 28x28 inputs and 10 classes. Representation: the last hidden layer. `mlp2` has only
    one hidden layer, and is faster.
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10

    hidden: tuple[Annotated[int, Field(ge=1, le=1_000_000)], ...] = Field(
        (200, 200), min_length=1, max_length=100, description="widths of the hidden layers"
    )

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        from torch import nn

        from edgefl.learning.models._shape import with_head

        layers: list[nn.Module] = [nn.Flatten()]
        for inputs, outputs in pairwise((prod(input_shape), *self.hidden)):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        return with_head(nn.Sequential(*layers), nn.Linear(self.hidden[-1], classes))

    def hidden_widths(self) -> tuple[int, ...]:
        return self.hidden

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size:
        widths = (prod(input_shape), *self.hidden, classes)
        products = [inputs * outputs for inputs, outputs in pairwise(widths)]
        # matrix products: each layer's forward pass and weight gradient, and all but the first layer's input gradient
        flops = 4 * products[0] + 6 * sum(products[1:])
        return Size(sum(products) + sum(widths[1:]), flops_per_sample=flops)
