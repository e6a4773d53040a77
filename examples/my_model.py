"""Build a multilayer perceptron with GELU."""

from collections import OrderedDict
from math import prod
from typing import ClassVar

from pydantic import Field
from torch import nn

from edgefl.learning.models import Model


class GeluMlp(Model):
    """Stack hidden layers of equal width, each with GELU (Hendrycks and Gimpel, 2016).

    The representation, for algorithms that use one (MOON), is the last hidden layer.
    """

    # the sizes for which `edgefl describe` counts parameters
    typical_input: ClassVar = (8, 8)
    typical_classes: ClassVar = 10

    hidden: int = Field(64, ge=1, le=4096, description="width of a hidden layer")
    depth: int = Field(1, ge=1, le=8, description="number of hidden layers")

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        width = prod(input_shape)
        for _ in range(self.depth):
            layers += [nn.Linear(width, self.hidden), nn.GELU()]
            width = self.hidden
        parts = {"features": nn.Sequential(*layers), "head": nn.Linear(width, classes)}
        return nn.Sequential(OrderedDict(parts))
