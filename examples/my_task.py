"""A loss that focuses on samples that are still misclassified."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from edgefl.learning.tasks.classification import Classification

if TYPE_CHECKING:
    from torch import Tensor


class Focal(Classification):
    """Focal loss, (1 - p)^gamma times the cross-entropy -log p: correctly classified samples count less.

    Lin et al., Focal Loss for Dense Object Detection, ICCV 2017. The score is still accuracy; gamma = 0 gives the
    cross-entropy.
    """

    gamma: float = Field(
        2.0,
        ge=0,
        le=100,
        description="focusing exponent; larger values reduce the weight of samples that are already right",
    )

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        surprise = super().losses(outputs, y)
        return (1 - (-surprise).exp()) ** self.gamma * surprise
