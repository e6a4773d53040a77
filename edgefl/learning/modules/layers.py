"""Recurrent layers, and dropout with given masks, which need special treatment in training."""

from typing import Any

import torch
from torch import Tensor, nn

from edgefl.learning.modules.randomness import watched


class Recurrent(nn.Module):
    """Base class by which `batching.choose` recognises recurrent layers other than `nn.RNNBase`."""


class _HandedDropout(nn.Module):
    """Dropout with a given mask, so that a device has the same mask when trained stacked or one by one.

    mask: 0 or 1 / (1 - p), [B, *shape], set before each training pass.
    """

    mask: Tensor | None

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.seen: list[torch.Size] = []  # shapes of the inputs in a training pass without masks
        self.register_buffer("mask", None, persistent=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a sample."""
        return tuple(self.seen[0][1:])

    def forward(self, x: Tensor) -> Tensor:
        if not self.training:
            return x
        if self.mask is None:
            self.seen.append(x.shape)
            return x
        return x * self.mask


@torch.no_grad()
def hand_in_dropout(module: nn.Module, example: Tensor) -> dict[str, _HandedDropout]:
    """Replace each `nn.Dropout` in a module with dropout by a given mask; return mask name -> new layer.

    Layers stay as they are if one of them runs several times in a pass, or not on samples [B, ...].

    Args:
        example: some samples [B, ...], which run through the module in training mode.
    """
    replaced: dict[str, _HandedDropout] = {}
    before: list[tuple[nn.Module, str, nn.Module]] = []
    for prefix, parent in list(module.named_modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout and child.p < 1:  # a mask divides by 1 - p
                layer: Any = _HandedDropout(child.p)
                before.append((parent, name, child))
                setattr(parent, name, layer)
                replaced[".".join(filter(None, (prefix, name, "mask")))] = layer
    if not replaced:
        return {}
    with watched(example.device):
        module.train()(example)
    if all([shape[:1] for shape in layer.seen] == [example.shape[:1]] for layer in replaced.values()):
        return replaced
    for parent, name, child in before:
        setattr(parent, name, child)
    return {}
