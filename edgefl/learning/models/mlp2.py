"""The two-layer network for the synthetic task."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from edgefl.learning.models import Model, Size

if TYPE_CHECKING:
    from torch import nn


class Mlp2(Model):
    """One hidden layer with a rectifier on the flattened input.

    FLASH's "2 layer fully connected model" for synthetic(alpha, beta). The paper names no width: 128 is ours,
    9,098 parameters for 60 inputs and 10 classes. It also calls the task convex, which only `logistic`, the
    model of Li et al., MLSys 2020, is. Representation: the hidden layer.
    """

    typical_input: ClassVar = (60,)
    typical_classes: ClassVar = 10

    hidden: int = Field(128, ge=1, le=1_000_000, description="width of the hidden layer")

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        from torch import nn

        from edgefl.learning.models._shape import with_head

        features = nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), self.hidden), nn.ReLU())
        return with_head(features, nn.Linear(self.hidden, classes))

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size:
        first, second = prod(input_shape) * self.hidden, self.hidden * classes
        # products: both layers forward and by their weights, the second one by its input too
        return Size(first + self.hidden + second + classes, flops_per_sample=4 * first + 6 * second)
