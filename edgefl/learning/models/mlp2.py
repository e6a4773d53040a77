"""The two-layer network for the synthetic task."""

from math import prod
from typing import ClassVar

from pydantic import Field
from torch import nn

from edgefl.learning.models import Model
from edgefl.learning.models._shape import with_head


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
        features = nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), self.hidden), nn.ReLU())
        return with_head(features, nn.Linear(self.hidden, classes))
