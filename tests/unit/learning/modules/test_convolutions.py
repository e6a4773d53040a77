"""Test that convolutions return the same results in both memory orders, and which order is chosen."""

from typing import Any

import pytest
import torch
from torch import nn

from edgefl.learning.models.cnn2 import Cnn2
from edgefl.learning.models.lenet import Lenet
from edgefl.learning.models.resnet18 import Resnet18
from edgefl.learning.models.svhn_cnn import SvhnCnn
from edgefl.learning.modules.convolutions import images_at_once, read_channels_last, wants_channels_last

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
LAST, LYING = True, False
ROUNDING = 1e-4  # relative to the largest output, of sums of at most 4,608 products in a different order


@pytest.mark.parametrize(
    ("gain", "torch_device", "work", "order"),
    [
        ("all", CPU, "all", LAST),
        ("all", CPU, "tests", LAST),
        ("tests", CPU, "all", LYING),
        ("tests", CPU, "tests", LAST),
        ("none", CPU, "tests", LYING),
        ("all", CUDA, "all", LYING),
        ("all", CUDA, "tests", LYING),
    ],
)
def test_order_by_model_and_device(gain: Any, torch_device: torch.device, work: Any, order: bool) -> None:
    assert wants_channels_last(gain, torch_device, work) == order


@pytest.mark.parametrize("shape", [(28, 28), (1, 28, 28), (3, 32, 32)])
@pytest.mark.parametrize(
    "model", [SvhnCnn(), SvhnCnn(variant="early"), Lenet(), Cnn2(), Resnet18()], ids=repr
)
def test_outputs_are_the_same_to_rounding(model: Any, shape: tuple[int, ...]) -> None:
    """Outputs agree in both orders, and all convolutions return channels-last images, even for grey images."""
    torch.manual_seed(0)
    module = model.build(shape, 10).eval()
    x = torch.randn(4, *shape)
    with torch.no_grad():
        wanted = module(x)
        read_channels_last(module)
        orders, last = [], {"memory_format": torch.channels_last}
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d):
                layer.register_forward_hook(lambda layer, _, out: orders.append(out.is_contiguous(**last)))
        found = module(x)
    assert orders
    assert all(orders)
    assert (found - wanted).abs().max() < ROUNDING * wanted.abs().max()


def test_a_layer_that_is_no_convolution_of_images_is_left_alone() -> None:
    module = nn.Sequential(nn.Conv1d(2, 3, 1), nn.Flatten(), nn.Linear(12, 2))
    read_channels_last(module)
    assert not any(layer._forward_pre_hooks for layer in module.modules())
    alone = nn.Sequential(nn.Conv2d(2, 3, 1))
    x = torch.randn(2, 4, 4)  # one image without a batch dimension
    wanted = alone(x)
    read_channels_last(alone)
    assert torch.equal(alone(x), wanted)


@pytest.mark.parametrize(("side", "count"), [(32, 128), (28, 167), (64, 32), (8, 1024), (224, 8)])
def test_so_many_pixels_are_tested_at_a_time(side: int, count: int) -> None:
    """A block has 131,072 pixels, but at least 8 images; models without convolutions have the largest blocks."""
    convolution, shape = nn.Conv2d(1, 1, 1), (side, side)
    assert images_at_once(convolution, torch.Size((1000, *shape)), 1024) == count
    assert images_at_once(convolution, torch.Size((1000, 3, *shape)), 1024) == count
    assert images_at_once(nn.Linear(4, 4), torch.Size((1000, *shape)), 1024) == 1024
    assert images_at_once(convolution.to("meta"), torch.Size((1000, *shape)), 1024) == 1024


@pytest.mark.parametrize("model", [SvhnCnn(), SvhnCnn(variant="early"), Lenet(), Cnn2()], ids=repr)
def test_pooling_before_the_rectifier_is_the_published_order_to_the_bit(model: Any) -> None:
    """Both orders agree, as max(relu(x)) = relu(max(x)), and gradients flow to the same input or to none."""
    torch.manual_seed(0)
    module = model.build((3, 32, 32), 10).eval()
    x, y = torch.randn(4, 3, 32, 32), torch.arange(4)

    def found() -> list[torch.Tensor]:
        logits = module(x)
        loss = nn.functional.cross_entropy(logits, y)
        return [logits, *torch.autograd.grad(loss, list(module.parameters()))]

    ours, layers, swapped = found(), module.features, 0
    for i in range(len(layers) - 1):
        if isinstance(layers[i], nn.MaxPool2d) and isinstance(layers[i + 1], nn.ReLU):
            layers[i], layers[i + 1] = layers[i + 1], layers[i]
            swapped += 1
    assert swapped == sum(isinstance(layer, nn.MaxPool2d) for layer in layers)
    assert all(map(torch.equal, ours, found()))
