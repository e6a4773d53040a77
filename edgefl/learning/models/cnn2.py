"""The two-layer convolutional network for EMNIST."""

from typing import ClassVar

from torch import nn

from edgefl.learning.models import Model
from edgefl.learning.models._shape import grey_to_channel, image_shape, with_head

HIDDEN = 128


class Cnn2(Model):
    """3x3 convolutions of 32 and 64 filters without padding, 2x2 pooling, a hidden layer of 128, dropout.

    With 1,206,590 parameters for 28x28 images and 62 classes, this is FLASH's model for EMNIST, from Reddi et al.,
    Adaptive Federated Optimization, ICLR 2021, appendix C. Representation: the hidden layer after its ReLU, before
    the second dropout.
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 62
    channels_last_gain: ClassVar = "all"

    dropout_pool: ClassVar[float] = 0.25  # dropout probability after pooling
    dropout: ClassVar[float] = 0.5  # dropout probability before the last layer

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = image_shape(input_shape, least=6)
        flat = 64 * ((height - 4) // 2) * ((width - 4) // 2)
        layers = [
            *grey_to_channel(input_shape),
            nn.Conv2d(channels, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.MaxPool2d(2),  # max pooling commutes with the ReLU, which is four times cheaper after pooling
            nn.ReLU(),
            nn.Dropout(self.dropout_pool),
            nn.Flatten(),
            nn.Linear(flat, HIDDEN),
            nn.ReLU(),
        ]
        return with_head(nn.Sequential(*layers), nn.Linear(HIDDEN, classes), self.dropout)
