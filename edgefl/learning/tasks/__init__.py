"""Tasks, which compare a model's outputs with targets; a task's file alone defines its loss and score."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import ClassVar, Literal, Self

import numpy as np

from edgefl.config.component import Component
from edgefl.learning.datasets import Data
from edgefl.learning.tensors import Tensor, in_double

__all__ = ["Task"]

Reduction = Literal["none", "mean", "sum"]


class Task(Component):
    """Base class of all tasks. A task has a loss that devices minimise, and a score that measures a model's quality.

    Loss and score are means over samples. A score is at most 1, and higher is better; a quantity for which lower is
    better belongs in the loss. Columns of tables are named after the score: with `score = "r2"` a run has r2, r2_std
    and r2_start instead of accuracy, accuracy_std and accuracy_start.
    """

    # name of the score in tables, a Python identifier
    score: ClassVar[str] = "score"
    # whether a target is an integer, one of C classes; otherwise components that need classes are errors
    of_classes: ClassVar[bool] = False
    # whether there is a target at each position of a sample, and a model's outputs are [B, length, C]
    per_position: ClassVar[bool] = False
    # extra columns of rounds.csv, which `further` fills
    columns: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def check(self, data: Data) -> None:
        """Check that the data set's targets fit this task.

        Raises:
            EdgeflError: the targets do not fit the task; the error names the targets' type and the remedy.
        """

    @abstractmethod
    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Compute the loss [B] of each sample, differentiably; outputs are [B, C] or [B, length, C]."""

    @abstractmethod
    def scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Compute the score [B] of each sample; arguments as for `losses`."""

    def fitted(self, data: Data) -> Self:
        """Return the task fitted to the data, for example to the targets' scale."""
        return self

    def kinds(self, y: np.ndarray) -> np.ndarray:
        """Return the kind of each sample [n] int64, counted from 0; in classification a sample's kind is its label.

        Partitions deal samples by kind, and a session is tested on the kinds that its devices hold.
        """
        return np.zeros(len(y), np.int64)

    def loss(self, outputs: Tensor, y: Tensor, reduction: Reduction) -> Tensor:
        """Compute the loss of samples as their mean or sum, or [B] without a reduction."""
        losses = self.losses(outputs, y)
        return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()

    def total(self, outputs: Tensor, y: Tensor) -> float:
        """Compute the sum of samples' scores."""
        return float(in_double(self.scores(outputs, y)).sum())

    def further(self, loss: float) -> Mapping[str, float]:
        """Return the values of the task's extra `columns`, given the mean loss on the test data."""
        return {}

    def scaling(self) -> tuple[float, float]:
        """Return the mean and std that convert a model's output to a target, mean + std x output."""
        return 0.0, 1.0
