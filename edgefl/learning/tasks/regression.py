"""Regression: a number for each sample."""

from typing import ClassVar, Self

import numpy as np
from pydantic import PrivateAttr

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data
from edgefl.learning.finite import require_finite
from edgefl.learning.tasks import Task
from edgefl.learning.tensors import Tensor


class Regression(Task):
    """Learn a number for each sample by squared error; the score R2 is the explained share of the targets' variance.

    Targets are [n] float32; a model has one output, which predicts a target standardised by the training targets, so
    that learning rates do not depend on units and the loss is in units of the targets' variance. R2 is 1 - mean
    squared error / variance of all test targets: 0 for their mean, and negative for a bad model. On part of the
    test data, such as a device's own test samples, the error is still divided by the variance of all test targets.

    Partitions deal samples by `kinds`: a kind is an interval of targets, and all kinds are of equal size.
    """

    score: ClassVar = "r2"

    parts: ClassVar[int] = 10  # number of intervals of targets, which are dealt to devices like labels
    _mean: float = PrivateAttr(0.0)
    _std: float = PrivateAttr(1.0)
    _variance: float = PrivateAttr(1.0)  # variance of test targets divided by variance of training targets
    _edges: tuple[float, ...] = PrivateAttr(())

    def check(self, data: Data) -> None:
        for name, split in data.splits.items():
            y = split.y
            if y.ndim != 1 or not np.issubdtype(y.dtype, np.floating):
                raise EdgeflError(
                    f"{data.targets_of(name)}: regression needs one number per sample,"
                    " float32: convert integers by y.astype(float) (npz) or set targets: numbers (csv); for labels"
                    " choose learning.task: classification"
                )
            require_finite(y, f"the {name} targets")
        if data.num_classes != 1:
            raise EdgeflError(
                f"num_classes is {data.num_classes}: in a regression it must be 1, for one output"
            )
        if not len(data.train.y) or not data.train.y.std() or not data.test.y.std():
            raise EdgeflError("all training targets or all test targets are equal: there is nothing to learn")

    def fitted(self, data: Data) -> Self:
        train, test = (split.y.astype(np.float64) for split in (data.train, data.test))
        shares = np.arange(1, self.parts) / self.parts
        fitted = self.model_copy()
        fitted._mean, fitted._std = float(train.mean()), float(train.std())
        fitted._variance = float(test.var() / train.var())
        fitted._edges = tuple(np.unique(np.quantile(train, shares)).tolist())
        return fitted

    def kinds(self, y: np.ndarray) -> np.ndarray:
        return np.searchsorted(np.array(self._edges), y, side="right").astype(np.int64)

    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        return (outputs[..., 0].float() - (y - self._mean) / self._std).square()

    def scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        return 1 - self.losses(outputs, y) / self._variance

    def scaling(self) -> tuple[float, float]:
        return self._mean, self._std
