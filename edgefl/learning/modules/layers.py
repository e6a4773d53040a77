"""Layers that training treats apart: recurrent ones, and dropout whose mask is handed in."""

from typing import Any

from torch import Tensor, nn


class Recurrent(nn.Module):
    """Base of layers that run along a sequence, as PyTorch's `nn.RNNBase` do; a mark for `batching.choose`."""


class _HandedDropout(nn.Module):
    """Dropout whose mask is handed in, so that devices trained together and one by one draw the same.

    mask: [B, *shape] of 0 and 1 / (1 - p), set before each training pass.
    """

    mask: Tensor

    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p
        self.shape: tuple[int, ...] | None = None  # of one sample, known after a pass in evaluation mode
        self.register_buffer("mask", None, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            return x * self.mask
        self.shape = tuple(x.shape[1:])
        return x


def hand_in_dropout(module: nn.Module) -> dict[str, _HandedDropout]:
    """Replace every `nn.Dropout` in a module; return the new layers by the names of their masks."""
    replaced: dict[str, _HandedDropout] = {}
    for prefix, parent in list(module.named_modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Dropout):
                layer: Any = _HandedDropout(child.p)
                setattr(parent, name, layer)
                replaced[".".join(filter(None, (prefix, name, "mask")))] = layer
    return replaced
