"""The two-layer network for the synthetic task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, ClassVar

from pydantic import Field

from edgefl.learning.models import Model, Outputs, OutputTerm, Size

if TYPE_CHECKING:
    from torch import Tensor, nn

    from edgefl.learning.modules.parameters import TensorLayout


# Products of matrices with at most this many numbers are computed as one batch and copied, which is faster for
# 60-128-10 but not for 784-128-10. PyTorch writes strided results one device at a time, 1 to 2 us each.
COPIED_UP_TO = 10_000


class Mlp2(Model):
    """One hidden layer with ReLU on the flattened input.

    FLASH's "2 layer fully connected model" for synthetic(alpha, beta). The paper states no width; our choice of 128
    leads to 9,098 parameters for 60 inputs and 10 classes. The paper also calls the task convex, which holds only for
    `logistic`, the model of Li et al., MLSys 2020. Representation: the hidden layer.
    """

    typical_input: ClassVar = (60,)
    typical_classes: ClassVar = 10
    knows_terms: ClassVar = True

    hidden: int = Field(128, ge=1, le=1_000_000, description="width of the hidden layer")

    def build(self, input_shape: tuple[int, ...], classes: int) -> nn.Module:
        from torch import nn

        from edgefl.learning.models._shape import with_head

        features = nn.Sequential(nn.Flatten(), nn.Linear(prod(input_shape), self.hidden), nn.ReLU())
        return with_head(features, nn.Linear(self.hidden, classes))

    def hidden_widths(self) -> tuple[int, ...]:
        return (self.hidden,)

    def size(self, input_shape: tuple[int, ...], classes: int) -> Size:
        first, second = prod(input_shape) * self.hidden, self.hidden * classes
        # matrix products: both layers' forward pass and weight gradient, and the second layer's input gradient
        return Size(first + self.hidden + second + classes, flops_per_sample=4 * first + 6 * second)

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
        # Written by hand, because vmap and autograd took most of a step with such small products: with 60-128-10 and
        # batches of 10, ten devices take 0.5 ms instead of 2.9 ms, and one device takes 0.34 ms instead of 1.7 ms.
        # MOON's term makes a round of thirty devices 1.8 times as long, and with autograd 5.7 times as long.
        import torch

        result = torch.empty_like(rows)
        tensors = layout.views(rows)
        by_first, by_first_bias, by_head, by_head_bias = layout.views(result).values()
        inputs = x.flatten(2)
        own = _outputs(tensors, inputs)
        delta = own.logits.softmax(2)
        places = y.unsqueeze(2)
        delta.scatter_add_(2, places, delta.new_full((), -1.0).expand(places.shape))
        delta *= weight.unsqueeze(2)
        by_hidden: list[Tensor] = []
        for term in terms:
            references = [_outputs(layout.views(others), inputs) for others in term.references]
            by_logits, by_representation = term.gradients(own, references)
            if by_logits is not None:
                delta += by_logits * weight.unsqueeze(2)
            if by_representation is not None:
                by_hidden.append(by_representation * weight.unsqueeze(2))
        _multiply(delta.transpose(1, 2), own.representation, by_head)
        torch.sum(delta, 1, out=by_head_bias)
        behind = torch.bmm(delta, tensors["head.weight"])
        for gradient in by_hidden:
            behind += gradient
        # the ReLU passes gradients where its output is above 0
        behind = torch.ops.aten.threshold_backward(behind, own.representation, 0)
        _multiply(behind.transpose(1, 2), inputs, by_first)
        torch.sum(behind, 1, out=by_first_bias)
        return result


def _outputs(tensors: Mapping[str, Tensor], inputs: Tensor) -> Outputs:
    """Compute the outputs for inputs [k, B, n] from the tensors of one model for all devices, or one per device."""
    import torch

    first, first_bias, head, head_bias = tensors.values()
    if first.dim() == 2:  # one model for all devices, so one product for all their samples
        hidden = torch.nn.functional.linear(inputs, first, first_bias).relu_()
        return Outputs(torch.nn.functional.linear(hidden, head, head_bias), hidden)
    hidden = torch.baddbmm(first_bias.unsqueeze(1), inputs, first.transpose(1, 2)).relu_()
    return Outputs(torch.baddbmm(head_bias.unsqueeze(1), hidden, head.transpose(1, 2)), hidden)


def _multiply(left: Tensor, right: Tensor, result: Tensor) -> None:
    """Write the products [k, n, m] of k pairs of matrices into `result`."""
    import torch

    if result[0].numel() > COPIED_UP_TO:
        torch.bmm(left, right, out=result)
    else:
        result.copy_(torch.bmm(left, right))
