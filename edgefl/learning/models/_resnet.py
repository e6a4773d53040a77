"""Residual networks for images. He et al., Deep Residual Learning for Image Recognition, CVPR 2016."""

from collections.abc import Sequence

from torch import Tensor, nn

from edgefl.learning.models._shape import grey_to_channel, image_shape, with_head

WIDTHS = (64, 128, 256, 512)
PROJECTION = (512, 256)


class _BasicBlock(nn.Module):
    """A residual block of two 3x3 convolutions and a shortcut, which is a 1x1 convolution if the shape changes."""

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.residual = nn.Sequential(
            nn.Conv2d(channels, filters, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(filters),
            nn.ReLU(),
            nn.Conv2d(filters, filters, 3, padding=1, bias=False),
            nn.BatchNorm2d(filters),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or channels != filters:
            self.shortcut = nn.Sequential(
                nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters)
            )
        self.rectify = nn.ReLU()

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.rectify(self.residual(x) + self.shortcut(x))
        return result


def resnet(input_shape: tuple[int, ...], classes: int, blocks: Sequence[int]) -> nn.Module:
    """Build a residual network: stem, four stages of basic blocks, mean over the pixels, MLP head 512-512-256-C.

    The stem is ImageNet's: 7x7 convolution of stride 2 and 3x3 pooling of stride 2. The head's first two layers, with
    a ReLU in between, are the projection head of Li, He and Song, Model-Contrastive Federated Learning, CVPR 2021;
    its 256 outputs are the representation.

    Args:
        blocks: number of basic blocks in each of the four stages.
    """
    channels, _, _ = image_shape(input_shape, least=1)
    layers = [
        *grey_to_channel(input_shape),
        nn.Conv2d(channels, WIDTHS[0], 7, stride=2, padding=3, bias=False),
        nn.BatchNorm2d(WIDTHS[0]),
        nn.ReLU(),
        nn.MaxPool2d(3, stride=2, padding=1),
    ]
    channels = WIDTHS[0]
    for stage, (filters, count) in enumerate(zip(WIDTHS, blocks, strict=True)):
        for block in range(count):
            layers.append(_BasicBlock(channels, filters, stride=2 if stage and not block else 1))
            channels = filters
    layers += [
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(channels, PROJECTION[0]),
        nn.ReLU(),
        nn.Linear(*PROJECTION),
    ]
    module = with_head(nn.Sequential(*layers), nn.Linear(PROJECTION[1], classes))
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
    return module
