"""The convolutional network for SVHN."""

from typing import ClassVar, Literal

from pydantic import Field
from torch import nn

from edgefl.learning.models import Model
from edgefl.learning.models._shape import grey_to_channel, image_shape, with_head

# filters of the convolutions before each of the three pooling layers
STAGES = {"journal": ((32, 32), (64, 64), (128,)), "early": ((32,), (64,), (128,))}
HIDDEN = 256


class SvhnCnn(Model):
    """3x3 convolutions in three stages that end in 2x2 pooling, then one hidden layer of 256 with dropout.

    `journal`: 32, 32, pool, 64, 64, pool, 128, pool, with batch norm after each convolution: 667,178 parameters for
    3x32x32 images and 10 classes, the journal paper's Table I. The paper gives the numbers of parameters and of FLOPs
    (60.7 million, 91.04 per parameter), but not the layers. The layers used here match the number of parameters
    exactly, and the FLOPs nearly: the matrix products of a forward pass have 59.4 million FLOPs.

    `early`: 32, pool, 64, pool, 128, pool, without batch norm: listing 2 of the early version as printed, 620,362
    parameters.

    Representation: the hidden layer after its ReLU, before the dropout.
    """

    typical_input: ClassVar = (3, 32, 32)
    typical_classes: ClassVar = 10
    channels_last_gain: ClassVar = "all"

    variant: Literal["journal", "early"] = Field(
        "journal", description="journal: Table I, 667,178 parameters; early: listing 2, 620,362 parameters"
    )
    dropout: ClassVar[float] = 0.5  # dropout probability before the last layer

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = image_shape(input_shape, least=8)
        layers = grey_to_channel(input_shape)
        for stage in STAGES[self.variant]:
            for filters in stage:
                layers.append(nn.Conv2d(channels, filters, 3, padding=1))
                if self.variant == "journal":
                    layers.append(nn.BatchNorm2d(filters))
                layers.append(nn.ReLU())
                channels = filters
            # max pooling commutes with the ReLU, which is four times cheaper after pooling
            layers.insert(-1, nn.MaxPool2d(2))
        flat = channels * (height // 8) * (width // 8)
        layers += [nn.Flatten(), nn.Linear(flat, HIDDEN), nn.ReLU()]
        return with_head(nn.Sequential(*layers), nn.Linear(HIDDEN, classes), self.dropout)
