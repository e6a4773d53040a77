"""Represent models as flat vectors, so that the models of a round are the rows of a matrix.

A vector has the M trainable parameters w, followed by Q statistics, the buffers of batch norm and similar layers.
Algorithms work on the parameters; statistics are only averaged.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class TensorLayout:
    """Names and shapes of a module's tensors in a part of the flat vector, in the module's order."""

    names: tuple[str, ...]
    shapes: tuple[torch.Size, ...]

    @classmethod
    def of(cls, module: nn.Module) -> "TensorLayout":
        """Return the layout of a module's trainable parameters."""
        return cls._of((name, p) for name, p in module.named_parameters() if p.requires_grad)

    @classmethod
    def of_statistics(cls, module: nn.Module) -> "TensorLayout":
        """Return the layout of a module's statistics, its persistent float buffers.

        Left out: counters such as batch norm's number of batches, which are used only for cumulative averages.
        """
        return cls._of((name, b) for name, b in _saved_buffers(module) if b.is_floating_point())

    @classmethod
    def _of(cls, named: Iterator[tuple[str, Tensor]]) -> "TensorLayout":
        shapes = {name: tensor.shape for name, tensor in named}
        return cls(tuple(shapes), tuple(shapes.values()))

    @property
    def size(self) -> int:
        """The length of this part of the vector: M for parameters, Q for statistics."""
        return sum(prod(shape) for shape in self.shapes)

    def flatten(self, module: nn.Module) -> Tensor:
        """Copy a module's tensors in this layout into a vector [size]."""
        tensors: dict[str, Tensor] = {**dict(module.named_parameters()), **dict(module.named_buffers())}
        pieces = [tensors[name].detach().reshape(-1) for name in self.names]
        return torch.cat(pieces) if pieces else torch.empty(0)

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Return views into rows [..., size]: name -> tensor [..., *shape], sharing memory."""
        pieces = rows.split([prod(shape) for shape in self.shapes], dim=-1)
        return {
            name: piece.unflatten(-1, shape) if shape else piece.squeeze(-1)
            for name, shape, piece in zip(self.names, self.shapes, pieces, strict=True)
        }


@dataclass(frozen=True)
class ModelLayout:
    """The layout of a module's whole vector [M + Q], with the parameters before the statistics."""

    parameters: TensorLayout
    statistics: TensorLayout

    @classmethod
    def of(cls, module: nn.Module) -> "ModelLayout":
        """Return the layout of a module's parameters and statistics."""
        return cls(TensorLayout.of(module), TensorLayout.of_statistics(module))

    @property
    def size(self) -> int:
        """The length M + Q of the vector."""
        return self.parameters.size + self.statistics.size

    def flatten(self, module: nn.Module) -> Tensor:
        """Copy a module's parameters and statistics into a vector [M + Q]."""
        parameters = self.parameters.flatten(module)
        # a module without statistics has no buffer that would show the torch device
        return torch.cat([parameters, self.statistics.flatten(module).to(parameters)])

    def views(self, rows: Tensor) -> dict[str, Tensor]:
        """Return views into rows [..., M + Q]: name -> tensor [..., *shape], sharing memory."""
        parameters, statistics = self.split(rows)
        return {**self.parameters.views(parameters), **self.statistics.views(statistics)}

    def split(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Split rows [..., M + Q] into parameters [..., M] and statistics [..., Q], sharing memory."""
        count = self.parameters.size
        return rows[..., :count], rows[..., count:]


def _saved_buffers(module: nn.Module) -> Iterator[tuple[str, Tensor]]:
    for prefix, part in module.named_modules():
        for name, buffer in part.named_buffers(recurse=False):
            if name not in part._non_persistent_buffers_set:
                yield f"{prefix}.{name}" if prefix else name, buffer
