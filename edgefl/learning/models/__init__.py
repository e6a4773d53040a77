"""Models: a module, and its gradients for many devices at once."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from edgefl.component import Component
from edgefl.learning.parameters import Layout


class Outputs(NamedTuple):
    """Of a batch: logits [..., B, C], and the representation [..., B, F] that the head makes them of."""

    logits: Tensor
    representation: Tensor


@dataclass(frozen=True)
class OutputTerm(ABC):
    """A term of the local loss that compares a model's outputs with those of other, constant models.

    references: those models, [M + Q] one for all devices, or [k, M + Q] a row for each; they run in
        evaluation mode.
    """

    references: tuple[Tensor, ...]

    @abstractmethod
    def loss(self, own: Outputs, references: Sequence[Outputs]) -> Tensor:
        """[..., B] of each sample, differentiable; there may be any dimensions before the batch's."""

    def part(self, devices: slice) -> Self:
        """The same term for some of the devices."""
        rows = tuple(r if r.dim() == 1 else r[devices] for r in self.references)
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, references=rows)
        return copy


# gradients of all further terms of the loss with respect to a batch's outputs
Push = Callable[[Outputs], Outputs]


class Model(Component):
    """Base of all models.

    A module with a representation has the children `features` and `head`; the representation is what
    `features` returns. In a module without them it is the logits.
    """

    # the sizes at which the papers use the model; `edgefl describe` counts its parameters there
    typical_input: ClassVar[tuple[int, ...]]
    typical_classes: ClassVar[int]
    # `gradients` and `logits` are written out for the scaling of raw inputs and for further terms of the loss
    takes_raw_inputs: ClassVar[bool] = False

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        """A freshly initialised module for inputs [batch, *input_shape] and logits [batch, classes].

        Training and evaluation mode differ by batch norm and `nn.Dropout` at most.
        """

    def gradients(
        self, module: nn.Module, layout: Layout, rows: Tensor, x: Tensor, y: Tensor, weight: Tensor
    ) -> Tensor:
        """Gradients of each device's weighted cross-entropy, by automatic differentiation.

        A model without statistics and dropout may write its gradients out by hand: local training then
        takes these, for a whole chunk of devices at once.

        Args:
            rows: [k, M] local models.
            x: [k, B, *input_shape] normalised inputs; y: [k, B] labels.
            weight: [k, B] weights that sum to one per device; 0 marks padding.

        Returns:
            [k, M].
        """

        def loss(row: Tensor, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
            logits = functional_call(module, layout.views(row), (x,))
            return (functional.cross_entropy(logits, y, reduction="none") * weight).sum()

        result: Tensor = vmap(grad(loss))(rows, x, y, weight)
        return result

    @classmethod
    def by_hand(cls) -> bool:
        """Whether this model writes its gradients out."""
        return cls.gradients is not Model.gradients


class HandedDropout(nn.Module):
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


def hand_in_dropout(module: nn.Module) -> dict[str, HandedDropout]:
    """Replace every `nn.Dropout` in a module; returns the new layers by the names of their masks."""
    found: dict[str, HandedDropout] = {}
    for prefix, parent in list(module.named_modules()):
        for name, child in list(parent.named_children()):
            if isinstance(child, nn.Dropout):
                layer: Any = HandedDropout(child.p)
                setattr(parent, name, layer)
                found[".".join(filter(None, (prefix, name, "mask")))] = layer
    return found
