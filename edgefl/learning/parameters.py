"""A model is a flat vector w in R^M; the models of a round are the rows of a [K, M] matrix."""

from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Layout:
    """Where each parameter of a module lies in the flat vector, in the order of named_parameters."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, module: nn.Module) -> "Layout":
        """The layout of a module's trainable parameters."""
        named = [(name, p.shape) for name, p in module.named_parameters() if p.requires_grad]
        return cls(tuple(name for name, _ in named), tuple(shape for _, shape in named))

    @property
    def size(self) -> int:
        """M, the number of trainable parameters."""
        return sum(prod(shape) for shape in self.shapes)

    def flatten(self, module: nn.Module) -> Tensor:
        """[M] copy of a module's parameters."""
        parameters = dict(module.named_parameters())
        return torch.cat([parameters[name].detach().reshape(-1) for name in self.names])

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Views into [..., M]: each parameter as [..., *shape], sharing memory with `rows`."""
        pieces = rows.split([prod(shape) for shape in self.shapes], dim=-1)
        return {
            name: piece.unflatten(-1, shape) if shape else piece.squeeze(-1)
            for name, shape, piece in zip(self.names, self.shapes, pieces, strict=True)
        }
