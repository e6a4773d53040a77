"""Prediction of the next word, or character, at each position of a text."""

import math
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data
from edgefl.learning.tasks import Task
from edgefl.learning.tensors import Tensor, in_double


class EveryToken(Task):
    """Learn the next token at each position of a text by cross-entropy; the scores are means over all positions.

    A sample is a piece of text [length], and its targets are the next token at each position, [n, length] integers; a
    model has outputs at each position, [batch, length, C], like `lstm` with `targets: every`. Texts have equal
    length, so means over samples are also means over positions. Partitions deal samples by their last target, as for
    `next_token`.

    Source: Reddi et al., Adaptive Federated Optimization, ICLR 2021, appendix C.
    """

    score: ClassVar = "accuracy"
    columns: ClassVar = ("perplexity",)
    per_position: ClassVar = True

    def check(self, data: Data) -> None:
        for name, split in data.splits.items():
            x, y = split.x, split.y
            if not np.issubdtype(y.dtype, np.integer) or y.ndim != 2 or y.shape != x.shape:
                raise EdgeflError(
                    f"{data.targets_of(name)}, and the samples are {list(x.shape)}:"
                    " every_token needs one integer per token; targets and samples must both be of shape [n, length]"
                    " (for one target per text choose learning.task: next_token)"
                )
            if y.size and not 0 <= int(y.min()) <= int(y.max()) < data.num_classes:
                raise EdgeflError(
                    f"the {name} targets are {int(y.min())} to {int(y.max())}; with num_classes "
                    f"{data.num_classes} they must be 0 to {data.num_classes - 1}"
                )

    def kinds(self, y: np.ndarray) -> np.ndarray:
        return y[:, -1].astype(np.int64)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        from torch.nn import functional

        each = functional.cross_entropy(outputs.flatten(0, 1), y.flatten().long(), reduction="none")
        return each.unflatten(0, y.shape).mean(1)

    def scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        return in_double(outputs.argmax(-1) == y).mean(1)

    def further(self, loss: float) -> Mapping[str, float]:
        return {"perplexity": math.exp(min(loss, 700.0))}  # exp of a larger loss overflows
