"""Models: a module, and its gradients for many devices at once."""

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from edgefl.component import Component
from edgefl.learning.parameters import Layout


class Model(Component):
    """Base of all models."""

    # the sizes at which the papers use the model; `edgefl describe` counts its parameters there
    typical_input: ClassVar[tuple[int, ...]]
    typical_classes: ClassVar[int]

    @abstractmethod
    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        """A freshly initialised module for inputs [batch, *input_shape] and logits [batch, classes]."""

    def gradients(
        self, module: nn.Module, layout: Layout, rows: Tensor, x: Tensor, y: Tensor, weight: Tensor
    ) -> Tensor:
        """Gradients of each device's weighted cross-entropy, by automatic differentiation.

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
