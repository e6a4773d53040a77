"""Multi-label classification: a sample has none, some or all of several labels."""

from typing import ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data
from edgefl.learning.tasks import Task
from edgefl.learning.tensors import Tensor


class MultiLabel(Task):
    """Learn which of L labels a sample has, by the mean binary cross-entropy over labels; the score is mean F1.

    Targets are [n, L] float32, 1 if a sample has a label and 0 if not; a model has L outputs, logits, and predicts a
    label if its logit is above 0. A sample's F1 is 2 |predicted and true| / (|predicted| + |true|), and 1 if both are
    empty (scikit-learn's `f1_score(average="samples", zero_division=1)`). Partitions deal samples by their first
    label; samples without labels form a kind of their own.
    """

    score: ClassVar = "f1"

    def check(self, data: Data) -> None:
        for name, split in data.splits.items():
            y = split.y
            if y.ndim != 2 or y.dtype != np.float32 or not np.isin(y, (0, 1)).all():
                raise EdgeflError(
                    f"{data.targets_of(name)}: multi_label needs [n, L] float32, 1 if a"
                    " sample has a label and 0 if not"
                )
            if y.shape[1] != data.num_classes:
                raise EdgeflError(
                    f"the {name} targets have {y.shape[1]} labels, but num_classes is {data.num_classes}"
                )

    def kinds(self, y: np.ndarray) -> np.ndarray:
        return np.where(y.any(1), y.argmax(1), y.shape[1]).astype(np.int64)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        from torch.nn import functional

        return functional.binary_cross_entropy_with_logits(outputs.float(), y, reduction="none").mean(-1)

    def scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        found = (outputs > 0).to(y)
        both, either = (found * y).sum(-1), found.sum(-1) + y.sum(-1)
        return (2 * both / either.clamp(min=1)).where(either > 0, either.new_ones(()))
