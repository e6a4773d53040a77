"""Choose the memory order of images for convolutions on a CPU, and the number of images tested at a time."""

from typing import Any, Literal

import torch
from torch import Tensor, nn

# Work that channels-last order makes faster on a CPU: none, tests only, or tests and sequential training.
Gain = Literal["none", "tests", "all"]
# Number of pixels tested at a time: 128 images of 32x32. Outputs of convolutions should stay in the cache, and memory
# above 32 MB comes from the system in new pages. The number was chosen by measuring 32 to 1,024 images.
TESTED_PIXELS, TESTED_LEAST = 131_072, 8


def wants_channels_last(gain: Gain, torch_device: torch.device, work: Literal["tests", "all"]) -> bool:
    """Return whether convolutions should read images in channels-last order, which makes some work faster.

    Measured in CPU time with AVX-512 and AVX2, rounds of `svhn_cnn`, `cnn2` and `lenet` are 1.15 to 1.7, 1.1 to 1.2
    and 1.1 to 1.4 times as fast, respectively; tests of 64 images are 1.4 to 2.9, 1.5 to 2 and 1.3 to 1.5 times as
    fast. Residual networks gain nothing in training (0.9 to 1.0 times as fast); in tests ResNet-18 is 1.05 to 1.25
    times as fast. Models from outside edgefl keep their order, because a model that calls `view` would fail.

    Args:
        gain: the work that this order makes faster for the model. work: the work that would use the order: tests
        only, or training as well.
    """
    return torch_device.type == "cpu" and gain in ("all", work)


def read_channels_last(module: nn.Module) -> None:
    """Make a module's convolutions read images, and so write outputs, in channels-last order."""
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_pre_hook(_reordered)


def images_at_once(module: nn.Module, shape: torch.Size, most: int) -> int:
    """Return how many samples of this shape to test at a time, at most `most`; fewer for convolutions on a CPU."""
    weights = [layer.weight for layer in module.modules() if isinstance(layer, nn.Conv2d)]
    if not weights or weights[0].device.type != "cpu" or len(shape) < 2:
        return most
    return min(most, max(TESTED_LEAST, TESTED_PIXELS // shape[-2:].numel()))


def _reordered(layer: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    x: Tensor = inputs[0]
    if x.dim() != 4:
        return inputs
    if x.shape[1] == 1:
        # the two orders of a grey image differ only in the strides, by which PyTorch chooses the order
        return x.contiguous().squeeze(1).unsqueeze(-1).permute(0, 3, 1, 2), *inputs[1:]
    return x.contiguous(memory_format=torch.channels_last), *inputs[1:]
