"""Models: a module, and its gradients for many devices at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

from edgefl.config.component import Component

if TYPE_CHECKING:  # a scenario is read without PyTorch, which takes longer to load than all else
    from torch import Tensor, nn

    from edgefl.learning.modules.parameters import TensorLayout

__all__ = ["ChunkOfDevices", "Model", "OutputTerm", "Outputs", "Size", "Stepper"]


class Outputs(NamedTuple):
    """A model's outputs for a batch: logits [..., B, C], and the representation [..., B, F] before the head."""

    logits: Tensor
    representation: Tensor


@dataclass(frozen=True)
class OutputTerm(ABC):
    """A term of the local loss that compares a model's outputs with those of other, constant models.

    references: the other models, [M + Q] one for all devices, or [k, M + Q] a row for each; they run in
        evaluation mode.
    """

    references: tuple[Tensor, ...]

    @abstractmethod
    def loss(self, outputs: Outputs, references: Sequence[Outputs]) -> Tensor:
        """Compute the term [..., B] for each sample, differentiably; any dimensions may precede the batch's.

        Args:
            outputs: of the model under training.
            references: of each of the other models.
        """

    def gradients(
        self, outputs: Outputs, references: Sequence[Outputs]
    ) -> tuple[Tensor | None, Tensor | None]:
        """Compute the term's gradients by logits [..., B, C] and representation [..., B, F]; None is zero.

        By automatic differentiation; terms that small models meet in every step may write them out.
        """
        import torch

        with torch.enable_grad():
            leaves = Outputs(*(part.detach().requires_grad_() for part in outputs))
            total = self.loss(leaves, references).sum()
            by_logits, by_representation = torch.autograd.grad(total, leaves, allow_unused=True)
        return by_logits, by_representation

    def part(self, positions: slice) -> Self:
        """Return the term for some of the devices."""
        # A copy without the constructor: this runs in every step that some devices no longer do, beside
        # products of 0.3 ms, and `dataclasses.replace` would look at every field again.
        rows = tuple(r if r.dim() == 1 else r[positions] for r in self.references)
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__, references=rows)
        return copy


# (outputs of a batch, outputs of each term's references, weights [k, B] of the samples) -> all gradients
# [k, B, ...] of the loss's further terms by these outputs
Push = Callable[[Outputs, Sequence[Sequence[Outputs]], "Tensor"], "list[Tensor]"]
# (step, first, end) -> raw inputs [end - first, B, *input_shape] of these devices; overwritten by the next call
Read = Callable[[int, int, int], "Tensor"]
# (first, end) -> raw inputs [end - first, *input_shape] of these samples; overwritten by the next call
ReadSome = Callable[[int, int], "Tensor"]
# (step, active, read) -> gradients [active, M], see `Model.stepper`
Stepper = Callable[[int, int, Read], "Tensor"]


@dataclass(frozen=True)
class ChunkOfDevices:
    """k devices that are trained together, and all steps of their round.

    layout: of the parameters in a row.
    rows: [k, M] local models, which the caller moves between the steps.
    y: [steps, k, B] labels.
    weight: [steps, k, B] weights that sum to one per device; 0 marks padding.
    scaling: (mean, s): inputs come raw and stand for (x - mean) s.
    references: of each further term of the loss, its models, [M] or [k, M].
    push: their gradients by the outputs; None: there are no such terms.
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
    """The numbers of a model without statistics: M parameters, and FLOPs of a sample forward and backward."""

    parameters: int
    flops_per_sample: int


class Model(Component):
    """Base of all models.

    A module with a representation has the children `features` and `head`; the representation is what
    `features` returns. In a module without them it is the logits.
    """

    # the sizes at which the papers use the model; `edgefl describe` counts its parameters there
    typical_input: ClassVar[tuple[int, ...]]
    typical_classes: ClassVar[int]
    # whether the `gradients` that it writes out go for a loss with further terms, too
    knows_terms: ClassVar[bool] = False
    # whether its `stepper` takes inputs that end with the last sample of the devices read, without padding behind
    leaves_out_padding: ClassVar[bool] = False
    # where it is faster on a CPU with images in channels-last order
    channels_last_gain: ClassVar[Literal["none", "tests", "all"]] = "none"

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        """Build a freshly initialised module for inputs [batch, *input_shape] and logits [batch, classes].

        Training and evaluation mode differ by batch norm and `nn.Dropout` at most.
        """

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size | None:
        """Return the size of a small model by its formula; None: it is built, and counted by running it.

        With it a scenario is validated without loading PyTorch, which takes longer than all else.
        """
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
        """Compute the gradients of each device's weighted loss, by automatic differentiation.

        A model without statistics and dropout may write its gradients out by hand: local training then
        takes these, for a whole chunk of devices at once.

        Args:
            rows: [k, M] local models.
            x: [k, B, *input_shape] normalised inputs; y: [k, B] labels.
            weight: [k, B] weights that sum to one per device; 0 marks padding.
            terms: of these k devices; each adds the sum over a device's samples of weight times itself. There are
                some only for a model that `knows_terms`.

        Returns:
            [k, M].
        """

        from torch.func import functional_call, grad, vmap
        from torch.nn import functional

        def loss(row: Tensor, x: Tensor, y: Tensor, weight: Tensor) -> Tensor:
            logits = functional_call(module, layout.views(row), (x,))
            return (functional.cross_entropy(logits, y, reduction="none") * weight).sum()

        result: Tensor = vmap(grad(loss))(rows, x, y, weight)
        return result

    def stepper(self, chunk: ChunkOfDevices) -> Stepper:
        """Start the written-out gradients of all steps of a chunk of devices, with further terms of the loss.

        For models so small that the work around the products counts; others write out `gradients`, or
        nothing.

        Returns:
            (step, active, read) -> [active, M] gradients of the first `active` devices, whose number is
            never larger than in the step before; the next call overwrites them. `read` gives raw inputs as
            floats, of as many devices at a time as the model takes. Where the model leaves out padding, they
            may be narrower than B.
        """
        raise NotImplementedError

    def logits(
        self,
        tensors: Mapping[str, Tensor],
        count: int,
        read: ReadSome,
        scaling: tuple[float, float],
    ) -> Tensor:
        """Compute the logits of samples by hand, for tests: as the module does in evaluation mode, and faster.

        Args:
            tensors: the module's parameters by name.
            count: B.
            read: gives raw inputs as floats, of as many samples at a time as the model takes.
            scaling: (mean, s): inputs stand for (x - mean) s.

        Returns:
            [B, C].
        """
        raise NotImplementedError

    @classmethod
    def writes_logits(cls) -> bool:
        """Return whether this model computes its logits by hand."""
        return cls.logits is not Model.logits

    @classmethod
    def writes_out(cls) -> Literal["stepper", "gradients"] | None:
        """Return what this model writes out by hand; None: nothing."""
        if cls.stepper is not Model.stepper:
            return "stepper"
        return "gradients" if cls.gradients is not Model.gradients else None

    @classmethod
    def writes_out_terms(cls) -> bool:
        """Return whether what this model writes out goes for a loss with further terms, too."""
        return cls.writes_out() == "stepper" or cls.knows_terms
