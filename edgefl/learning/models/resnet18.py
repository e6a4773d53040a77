"""ResNet-18 for CIFAR."""

from typing import ClassVar

from torch import nn

from edgefl.learning.models import Model
from edgefl.learning.models._resnet import resnet


class Resnet18(Model):
    """ResNet-18 with ImageNet's 7x7 stem and an MLP head 512-512-256-C.

    11,573,066 parameters for RGB images of any size and 10 classes, 11,596,196 for 100 classes, as in the journal
    paper's Table I (CIFAR-10, CIFAR-100). He et al., CVPR 2016; the head follows Li, He and Song, CVPR 2021.
    Representation: the 256 inputs of the last layer. Left out: the 3x3 stem that others use for 32x32 images, which
    would change the numbers of parameters.
    """

    typical_input: ClassVar = (3, 32, 32)
    typical_classes: ClassVar = 10
    channels_last_gain: ClassVar = "tests"
    blocks: ClassVar[tuple[int, ...]] = (2, 2, 2, 2)  # number of basic blocks in each of the four stages

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        return resnet(input_shape, classes, self.blocks)
