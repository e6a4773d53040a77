"""Run a module on a batch, and sum the extra terms of the local loss."""

from collections.abc import Sequence

from torch import Tensor, nn
from torch.func import functional_call

from edgefl.learning.models import Outputs, OutputTerm


def run(module: nn.Module, tensors: dict[str, Tensor] | None, x: Tensor) -> Outputs:
    """Run a module with `tensors` instead of its own on a batch [B, ...]; return logits and representation."""
    seen: list[Tensor] = []
    features = getattr(module, "features", None)  # in a module from outside edgefl it may be anything
    hook = None
    if isinstance(features, nn.Module):
        hook = features.register_forward_hook(lambda m, args, out: seen.append(out))
    try:
        logits = module(x) if tensors is None else functional_call(module, tensors, (x,))
    finally:
        if hook:
            hook.remove()
    return Outputs(logits, seen[0] if seen and isinstance(seen[0], Tensor) else logits)


def weighted(
    terms: Sequence[OutputTerm], references: Sequence[Sequence[Outputs]], outputs: Outputs, weight: Tensor
) -> Tensor:
    """Return the sum of the loss's extra terms over all samples, each multiplied by the sample's weight."""
    total = weight.new_zeros(())
    outputs = Outputs(*(part.float() for part in outputs))
    for term, term_outputs in zip(terms, references, strict=True):
        total = total + (term.loss(outputs, term_outputs) * weight).sum()
    return total


def pushed(
    terms: Sequence[OutputTerm], outputs: Outputs, references: Sequence[Sequence[Outputs]], weight: Tensor
) -> list[Tensor]:
    """Return the gradients [k, B, ...] of weighted loss terms with respect to logits and representation."""
    return [
        gradient * weight.unsqueeze(-1)
        for term, term_outputs in zip(terms, references, strict=True)
        for gradient in term.gradients(outputs, term_outputs)
        if gradient is not None
    ]
