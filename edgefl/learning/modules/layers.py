"""Recurrent layers, and dropout with given masks, which need special treatment in training."""

from typing import Any

from torch import Tensor, nn


class Recurrent(nn.Module):
    """Base class by which `batching.choose` recognises recurrent layers other than `nn.RNNBase`."""


class _HandedDropout(nn.Module):
    """Dropout with a given mask, so that a device has the same mask when trained stacked or one by one.

    mask: 0 or 1 / (1 - p), [B, *shape], set before each training pass.
    """

    mask: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.shape: tuple[int, ...] | None = None  # shape of a sample, known after a pass in evaluation mode
        self.register_buffer("mask", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return x * self.mask
        self.shape = tuple(x.shape[1:])
        return x


def hand_in_dropout(module: nn.Module) -> dict[str, _HandedDropout]:
    """Replace every `nn.Dropout` in a module with dropout by a given mask; return mask name -> new layer."""
    replaced: dict[str, _HandedDropout] = {}
    for prefix, parent in list(module.named_modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Dropout):
                layer: Any = _HandedDropout(child.p)
                setattr(parent, name, layer)
                replaced[".".join(filter(None, (prefix, name, "mask")))] = layer
    return replaced
