"""Continue from the last session's model, and preserve its knowledge by distillation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from edgefl.learning.models import Outputs, OutputTerm
from edgefl.learning.tensors import Tensor
from edgefl.learning.warm_starts.previous import Previous


class Continuous(Previous):
    """Baseline of the session papers: start like `previous`, and distil the previous model while training.

    The local loss is cross-entropy + coefficient x KL(q || p): p and q are softmax outputs over the previous
    session's classes only, p of the model in training, q of the previous session's last model (in evaluation mode).
    Based on the class-semantic relation distillation of Dong et al., Federated Class-Incremental Learning, CVPR 2022,
    which also mixes the labels of new classes into q. With coefficient 0 this is `previous`.

    With `classes: all`, q and p are over all classes, and a session started by `learning.after_pilot: restart`
    distils from a model of zeros, for which all classes are equally likely; the session papers' experiments ran this
    way. In these papers `continuous` replaces the algorithm: combine it with `learning.algorithm: fedavg`.
    """

    first_two_as_previous: ClassVar = False
    of_classes: ClassVar = True

    coefficient: float = Field(
        1.0, ge=0, le=1e6, description="weight of the distillation (J: 1.0; 0.5 for AG News)"
    )

    classes: Literal["known", "all"] = Field(
        "known", description="distilled classes. known: classes of the previous session; all: all classes"
    )

    def anchor(self, previous: Tensor, known: Tensor) -> OutputTerm | None:
        if self.classes == "all":
            known = known.new_ones(known.shape)
        # with a single known class, q and p are both 1, and the divergence is 0
        if not self.coefficient or int(known.sum()) < 2:
            return None
        return _Distillation((previous,), self.coefficient, known.nonzero().squeeze(1))


@dataclass(frozen=True)
class _Distillation(OutputTerm):
    coefficient: float
    classes: Tensor  # indices of the known classes, [c]

    def loss(self, outputs: Outputs, references: Sequence[Outputs]) -> Tensor:
        from torch.nn import functional

        log_p = functional.log_softmax(outputs.logits.index_select(-1, self.classes), -1)
        log_q = functional.log_softmax(references[0].logits.index_select(-1, self.classes), -1)
        return self.coefficient * (log_q.exp() * (log_q - log_p)).sum(-1)

    def gradients(
        self, outputs: Outputs, references: Sequence[Outputs]
    ) -> tuple[Tensor | None, Tensor | None]:
        # d KL(q || p) / d logits = p - q on the known classes
        return self.coefficient * (self._among_known(outputs) - self._among_known(references[0])), None

    def _among_known(self, outputs: Outputs) -> Tensor:
        """Return the softmax probabilities [..., B, C] over the known classes, 0 for all other classes."""
        import torch

        logits = outputs.logits
        known = torch.full((logits.shape[-1],), -torch.inf, device=logits.device)
        known[self.classes] = 0.0
        shifted = logits + known
        odds = (shifted - shifted.amax(-1, keepdim=True)).exp()
        return odds / odds.sum(-1, keepdim=True)
