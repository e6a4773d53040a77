"""Make modules as other libraries do, for tests of the model `factory`."""

from torch import nn


def tiny(num_classes: int, in_chans: int = 3) -> nn.Module:
    """Return a module of 192 parameters per class and channel, for images of at least 8 x 8 pixels."""
    return nn.Sequential(nn.AdaptiveAvgPool2d(8), nn.Flatten(), nn.Linear(64 * in_chans, num_classes))


def convolution(num_classes: int, in_channels: int) -> nn.Module:
    """Return a convolution whose kernel covers an image of 8 x 8 pixels."""
    return nn.Conv2d(in_channels, num_classes, 8)
