"""Classification: a sample belongs to one of C classes."""

from typing import ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data
from edgefl.learning.tasks import Reduction, Task
from edgefl.learning.tensors import Tensor

VECTOR = 16  # number of float32 values in the widest vector registers


class Classification(Task):
    """Learn a sample's class by cross-entropy; accuracy is the share of samples with the largest output at the label.

    Targets are integers from 0 to C-1, [n]; a model has C outputs, the logits.
    """

    score: ClassVar = "accuracy"
    of_classes: ClassVar = True

    def check(self, data: Data) -> None:
        for name, split in data.splits.items():
            y = split.y
            if y.ndim != 1 or not np.issubdtype(y.dtype, np.integer):
                several = y.ndim > 1
                instead = (
                    "for several labels per sample choose learning.task: multi_label; for a label at each position "
                    "of a text choose every_token"
                    if several
                    else "for numbers choose learning.task: regression"
                )
                if not several and np.array_equal(y, np.rint(y)):
                    instead = f"convert whole numbers by y.astype(int); {instead}"
                if y.shape[1:] == (1,):
                    instead = "one column of labels becomes a list by y.ravel()"
                raise EdgeflError(
                    f"{data.targets_of(name)}: classes need one label per sample, an integer or a word ({instead})"
                )
            if len(y) and not 0 <= int(y.min()) <= int(y.max()) < data.num_classes:
                raise EdgeflError(
                    f"the {name} labels are {int(y.min())} to {int(y.max())}; with num_classes "
                    f"{data.num_classes} they must be 0 to {data.num_classes - 1}"
                )

    def kinds(self, y: np.ndarray) -> np.ndarray:
        return y

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        from torch.nn import functional

        return functional.cross_entropy(outputs, y, reduction="none")

    def loss(self, outputs: Tensor, y: Tensor, reduction: Reduction) -> Tensor:
        from torch.nn import functional

        if not self.is_cross_entropy():
            return super().loss(outputs, y, reduction)
        if outputs.shape[1] >= VECTOR and outputs.is_contiguous():
            return functional.cross_entropy(outputs, y, reduction=reduction)
        # put classes before samples, since a softmax over less than a vector register is up to ten times slower
        losses = functional.cross_entropy(outputs.t()[None], y[None], reduction=reduction)
        return losses[0] if reduction == "none" else losses

    @classmethod
    def is_cross_entropy(cls) -> bool:
        """Return whether the loss is the cross-entropy, for which small models have hand-written gradients."""
        return cls.losses is Classification.losses

    def scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        return outputs.contiguous().argmax(1) == y
