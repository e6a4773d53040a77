"""ResNet-34 for Tiny-ImageNet."""

from typing import ClassVar

from edgefl.learning.models.resnet18 import Resnet18


class Resnet34(Resnet18):
    """ResNet-34 with ImageNet's 7x7 stem and an MLP head 512-512-256-C.

    21,730,056 parameters for RGB images of any size and 200 classes, as in the journal paper's Table I
    (Tiny-ImageNet). He et al., CVPR 2016; the head follows Li, He and Song, CVPR 2021. Representation: the 256 inputs
    of the last layer.
    """

    typical_input: ClassVar = (3, 64, 64)
    typical_classes: ClassVar = 200
    blocks: ClassVar = (3, 4, 6, 3)
