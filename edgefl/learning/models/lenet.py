"""LeNet-5 as in benchmarks of federated learning."""

from typing import ClassVar

from torch import nn

from edgefl.learning.models import Model
from edgefl.learning.models._shape import grey_to_channel, image_shape, with_head


class Lenet(Model):
    """5x5 convolutions of 6 and 16 filters without padding, each pooled 2x2; hidden layers of 120 and 84.

    LeCun et al., 1998, with ReLU and max pooling: the "simple CNN" of NIID-Bench (Li et al., ICDE 2022) and of
    MOON's encoder. 44,426 parameters for 28x28 images and 10 classes, 62,006 for colour images of 32x32.
    Representation: the hidden layer of 84.
    """

    typical_input: ClassVar = (28, 28)
    typical_classes: ClassVar = 10
    channels_last_gain: ClassVar = "all"

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        channels, height, width = image_shape(input_shape, least=16)
        flat = 16 * (((height - 4) // 2 - 4) // 2) * (((width - 4) // 2 - 4) // 2)
        layers = [
            *grey_to_channel(input_shape),
            # max pooling commutes with the ReLU, which is four times cheaper after pooling
            *(nn.Conv2d(channels, 6, 5), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU()),
            *(nn.Flatten(), nn.Linear(flat, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU()),
        ]
        return with_head(nn.Sequential(*layers), nn.Linear(84, classes))
