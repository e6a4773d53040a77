"""Models, which are PyTorch modules, some with hand-written gradients for many devices at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

from edgefl.config.component import Component

if TYPE_CHECKING:  # a scenario is read without PyTorch, which takes longer to load than everything else
    from torch import Tensor, nn

    from edgefl.learning.modules.parameters import TensorLayout

__all__ = ["ChunkOfDevices", "Model", "OutputTerm", "Outputs", "Size", "Stepper"]


class Outputs(NamedTuple):
    """A model's logits [..., B, C] for a batch, and the representation [..., B, F] before the head."""

    logits: Tensor
    representation: Tensor


@dataclass(frozen=True)
class OutputTerm(ABC):
    """A term of the local loss that compares a model's outputs with the outputs of constant reference models.

    references: the reference models, each [M + Q] if all devices share it, or [k, M + Q] with one row per device; all
        run in evaluation mode.
    """

    references: tuple[Tensor, ...]

    @abstractmethod
    def loss(self, outputs: Outputs, references: Sequence[Outputs]) -> Tensor:
        """Compute the loss term of each sample [..., B], differentiably; any dimensions may precede the batch.

        Args:
            outputs: outputs of the model that is trained.
            references: outputs of each reference model.
        """

    def gradients(
        self, outputs: Outputs, references: Sequence[Outputs]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Compute the loss term's gradients at logits [..., B, C] and representation [..., B, F]; None means zero.

        The default uses automatic differentiation; a term that small models compute in every step may override it
        with explicit formulas.
        """
        import torch

        with torch.enable_grad():
            leaves = Outputs(*(part.detach().requires_grad_() for part in outputs))
            total = self.loss(leaves, references).sum()
            by_logits, by_representation = torch.autograd.grad(total, leaves, allow_unused=True)
        return by_logits, by_representation

    def part(self, positions: slice) -> Self:
        """Return the loss term for the devices at these indices."""
        # A copy without the constructor: this runs in every step after some devices have finished, next to products
        # of 0.3 ms, and `dataclasses.replace` would process every field again.
        rows = tuple(r if r.dim() == 1 else r[positions] for r in self.references)
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, references=rows)
        return copy


# (outputs of a batch, outputs of each term's references, weights [k, B] of the samples) -> all gradients
# [k, B, ...] of the loss's extra terms with respect to these outputs
Push = Callable[[Outputs, Sequence[Sequence[Outputs]], "Tensor"], "list[Tensor]"]
# (step, first, end) -> raw inputs [end - first, B, *input_shape] of these devices; overwritten by the next call
Read = Callable[[int, int, int], "Tensor"]
# (first, end) -> raw inputs [end - first, *input_shape] of these samples; overwritten by the next call
ReadSome = Callable[[int, int], "Tensor"]
# (step, active, read) -> gradients [active, M], see `Model.stepper`
Stepper = Callable[[int, int, Read], "Tensor"]


@dataclass(frozen=True)
class ChunkOfDevices:
    """A chunk of k devices that train together, with the data of all steps of their round.

    layout: layout of the parameters in a row of `rows`.
    rows: local models [k, M]; the caller updates them between steps.
    y: labels [steps, k, B].
    weight: weights [steps, k, B] that sum to one per device; 0 marks padding.
    scaling: (mean, s); inputs are raw and stand for (x - mean) s.
    references: reference models of each extra term of the loss, [M] or [k, M].
    push: function that returns the extra terms' gradients with respect to the outputs, or None without such terms.
    """

    layout: TensorLayout
    rows: Tensor
    y: Tensor
    weight: Tensor
    scaling: tuple[float, float] = (0.0, 1.0)
    references: Sequence[Sequence[Tensor]] = ()
    push: Push | None = None


@dataclass(frozen=True)
class Size:
    """A model's number M of parameters, without statistics, and its FLOPs per sample, forward and backward."""

    parameters: int
    flops_per_sample: int


class Model(Component):
    """Base class of all models.

    A module with a representation has the children `features` and `head`; the representation is what
    `features` returns. Without these children, the representation is the logits.
    """

    # what to do with a class that is not a Model, in an error
    if_foreign: ClassVar = "; for a torch.nn.Module, write model: {name: factory, function: 'module:Class'}"
    # input shape and number of classes in the papers, for which `edgefl describe` counts the parameters
    typical_input: ClassVar[tuple[int, ...]]
    typical_classes: ClassVar[int]
    # whether the model's hand-written `gradients` support extra terms of the loss
    knows_terms: ClassVar[bool] = False
    # whether the model's `stepper` accepts inputs without the padding after the last sample of the devices read
    leaves_out_padding: ClassVar[bool] = False
    # work that is faster on a CPU if images are in channels-last order
    channels_last_gain: ClassVar[Literal["none", "tests", "all"]] = "none"

    about_methods: ClassVar = {
        "build": ("size", "hidden_widths", "gradients", "knows_terms", "stepper", "logits")
    }

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        """Build and initialise the model's module, for inputs [batch, *input_shape] and logits [batch, classes].

        The module may draw random numbers from PyTorch's global generators, as dropout does, in training mode only;
        edgefl seeds these generators for each device and step.
        """

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size | None:
        """Return the model's size by a formula, or None if only building and running the model can determine it.

        A formula lets scenarios be validated without PyTorch, which takes longer to load than everything else.
        """
        return None

    def hidden_widths(self) -> tuple[int, ...] | None:
        """Return the widths of the hidden layers of a fully connected model with ReLU, or None for other models."""
        return None

    def gradients(
        self,
        module: nn.Module,
        layout: TensorLayout,
        rows: Tensor,
        x: Tensor,
        y: Tensor,
        weight: Tensor,
        terms: Sequence[OutputTerm] = (),
    ) -> Tensor:
        """Compute the gradients [k, M] of each device's weighted loss, by automatic differentiation.

        A model without statistics and dropout may override this method with explicit formulas, which local training
        then applies to a chunk of devices.

        Args:
            rows: local models [k, M].
            x: normalised inputs [k, B, *input_shape]. y: labels [k, B].
            weight: weights [k, B] that sum to one per device; 0 marks padding.
            terms: extra terms of the loss for these k devices, each a weighted sum over a device's samples; only
                for a model that `knows_terms`.

        Returns:
            The gradients, [k, M].
        """

        from torch.func import functional_call, grad, vmap
        from torch.nn import functional

        def loss(row: Tensor, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
            logits = functional_call(module, layout.views(row), (x,))
            return (functional.cross_entropy(logits, y, reduction="none") * weight).sum()

        result: Tensor = vmap(grad(loss))(rows, x, y, weight)
        return result

    def stepper(self, chunk: ChunkOfDevices) -> Stepper:
        """Return a hand-written function that computes a chunk's gradients step by step, with all terms of the loss.

        The method is for models so small that the overhead around matrix products matters; other models override
        `gradients`, or neither method.

        Returns:
            (step, active, read) -> gradients [active, M] of the first `active` devices; `active` never rises, and the
            next call overwrites the gradients. `read` returns raw inputs as floats, for as many devices at a time as
            the model chooses. If the model leaves out padding, these inputs may be narrower than B.
        """
        raise NotImplementedError

    def logits(
        self,
        tensors: Mapping[str, Tensor],
        count: int,
        read: ReadSome,
        scaling: tuple[float, float],
    ) -> Tensor:
        """Compute the logits [B, C] of test samples as the module in evaluation mode does, with faster code.

        Args:
            tensors: the module's parameters by name.
            count: the number of samples B.
            read: function that returns raw inputs as floats, for as many samples at a time as the model chooses.
            scaling: (mean, s); a raw input x stands for (x - mean) s.

        Returns:
            The logits, [B, C].
        """
        raise NotImplementedError

    @classmethod
    def writes_logits(cls) -> bool:
        """Return whether this model computes logits of test samples with its own code."""
        return cls.logits is not Model.logits

    @classmethod
    def writes_out(cls) -> Literal["stepper", "gradients"] | None:
        """Return the name of the method with this model's hand-written gradients, or None if it uses autograd."""
        if cls.stepper is not Model.stepper:
            return "stepper"
        return "gradients" if cls.gradients is not Model.gradients else None

    @classmethod
    def writes_out_terms(cls) -> bool:
        """Return whether this model's hand-written gradients support extra terms of the loss."""
        return cls.writes_out() == "stepper" or cls.knows_terms
