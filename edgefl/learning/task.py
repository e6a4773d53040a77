"""The learning task: to which of C classes a sample belongs. Loss and metric stand here and nowhere else.

Models that write their gradients out use the loss's gradient with respect to the logits, softmax - onehot.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data

if TYPE_CHECKING:  # what the data are is checked without PyTorch
    from torch import Tensor


def loss(logits: "Tensor", y: "Tensor", reduction: Literal["none", "mean", "sum"]) -> "Tensor":
    """Compute the cross-entropy of samples.

    Args:
        logits: [B, C].
        y: [B] labels.
        reduction: over the samples; none: [B].
    """
    from torch.nn import functional

    return functional.cross_entropy(logits, y, reduction=reduction)


@dataclass(frozen=True)
class Objective:
    """What devices minimise: the cross-entropy, perhaps with smoothed labels and weights of classes.

    smoothing: share e of each label that is spread over all C classes: (1 - e) onehot + e / C.
    class_weights: of each class, by which its part of a sample's loss is multiplied; none: 1. The mean over a batch
        is over samples, not over their weights.

    Source: as `torch.nn.functional.cross_entropy`, sample by sample.
    """

    smoothing: float = 0.0
    class_weights: tuple[float, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it is the cross-entropy alone, whose gradients models may write out."""
        return not self.smoothing and not self.class_weights

    def losses(self, logits: "Tensor", y: "Tensor") -> "Tensor":
        """Compute the loss [B] of samples with logits [B, C] and labels [B]."""
        if self.plain:
            return loss(logits, y, "none")
        from torch.nn import functional

        weights = logits.new_tensor(self.class_weights) if self.class_weights else None
        return functional.cross_entropy(
            logits, y, weight=weights, label_smoothing=self.smoothing, reduction="none"
        )


def hits(logits: "Tensor", y: "Tensor") -> int:
    """Count the samples whose largest logit [B, C] is that of their label [B]."""
    return int((logits.argmax(1) == y).sum())


def require_labels(data: Data) -> None:
    """Refuse targets that are not labels 0 to C-1.

    Raises:
        EdgeflError: says what they are instead.
    """
    for name, split in (("training", data.train), ("test", data.test)):
        y = split.y
        if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
            several = y.ndim > 1 and np.issubdtype(y.dtype, np.integer)
            instead = (
                "a label per token is not supported: make a sample of each token's past, as shakespeare does"
                if several
                else "regression is not supported: cut the range of the targets into classes"
            )
            raise EdgeflError(
                f"the {name} targets are {y.dtype} {list(y.shape)}: edgefl learns classes, and a target is one "
                f"label per sample, an integer from 0 on ({instead})"
            )
        if len(y) and not 0 <= int(y.min()) <= int(y.max()) < data.num_classes:
            raise EdgeflError(
                f"the {name} labels are {int(y.min())} to {int(y.max())}; with num_classes "
                f"{data.num_classes} they must be 0 to {data.num_classes - 1}"
            )
