"""Model-contrastive federated learning."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from pydantic import Field

from edgefl.learning.algorithms.fedavg import FedAvg
from edgefl.learning.models import Outputs, OutputTerm
from edgefl.learning.tensors import Tensor

SHORTEST = 1e-8  # lower bound of a representation's norm, so that a zero vector has cosine similarity 0


class Moon(FedAvg):
    """Pull representations towards those of the received model and away from those of the last local model.

    Li, He and Song, MOON, CVPR 2021: with z, z_glob, z_prev the representations of a sample under the local,
    the received and the device's previous local model, the contrastive term of the loss is
    -log(e^(s_glob/tau) / (e^(s_glob/tau) + e^(s_prev/tau))), where s is the cosine similarity to z. The
    representation is the layer before the head, or the logits for logistic regression. The received and the
    previous model run in evaluation mode. The previous model stays with its device through sessions and cells; a
    device without one uses the received model, for which the term has no gradient.

    With mu = 0 the algorithm is FedAvg.
    """

    keeps_local_model: ClassVar = True
    of_classes: ClassVar = True

    mu: float = Field(1.0, ge=0, le=1e9, description="weight of the contrastive term")
    tau: float = Field(1.0, ge=1e-6, le=1e9, description="temperature")

    def term(self, start: Tensor, previous: Tensor | None) -> OutputTerm | None:
        assert previous is not None  # the learner keeps the previous local model
        return _Contrast((start, previous), self.mu, self.tau) if self.mu else None


@dataclass(frozen=True)
class _Contrast(OutputTerm):
    mu: float
    tau: float

    def loss(self, outputs: Outputs, references: Sequence[Outputs]) -> Tensor:
        from torch.nn import functional

        _, _, nearer_previous = self._compared(outputs, references)
        # -log(a / (a + b)) = log(1 + b / a)
        return self.mu * functional.softplus(nearer_previous / self.tau)

    def gradients(
        self, outputs: Outputs, references: Sequence[Outputs]
    ) -> tuple[Tensor | None, Tensor | None]:
        # with u = z / |z| and loss mu softplus(u.d / tau): d u.d / d z = (d - (u.d) u) / |z|
        direction, towards, nearer_previous = self._compared(outputs, references)
        slope = (nearer_previous / self.tau).sigmoid() * (self.mu / self.tau * _inverse_length(outputs))
        return None, slope.unsqueeze(-1) * (towards - nearer_previous.unsqueeze(-1) * direction)

    def _compared(self, outputs: Outputs, references: Sequence[Outputs]) -> tuple[Tensor, Tensor, Tensor]:
        """Return direction u [..., F]; d, the previous minus the received direction; and the product u.d."""
        direction, received, previous = (
            model.representation * _inverse_length(model).unsqueeze(-1) for model in (outputs, *references)
        )
        towards = previous - received
        return direction, towards, (direction * towards).sum(-1)


def _inverse_length(outputs: Outputs) -> Tensor:
    # torch's norm along a strided axis takes 5 times as long
    square = (outputs.representation * outputs.representation).sum(-1)
    return square.clamp_min(SHORTEST**2).rsqrt()
