"""Tasks: compare a model's outputs with targets. Loss and score of a task are defined in its file only."""

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
    """Base of all tasks: a loss, which devices minimise, and a score, which measures how good models are.

    Both are means over samples. A score is at most 1, and higher is better; a quantity for which lower is better
    belongs in the loss. Columns of tables are named after the score: with `score = "r2"` a run has r2, r2_std and
    r2_start instead of accuracy, accuracy_std and accuracy_start.
    """

    # name of the score in tables, a Python identifier
    score: ClassVar[str] = "score"
    # whether a target is one of C classes, an integer; otherwise components that need classes are refused
    of_classes: ClassVar[bool] = False
    # whether there is a target at each position of a sample, and a model's outputs are [B, length, C]
    per_position: ClassVar[bool] = False
    # further columns of rounds.csv, which `further` fills
    columns: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def check(self, data: Data) -> None:
        """Check that the targets fit this task.

        Raises:
            EdgeflError: they do not fit; names their type and the remedy.
        """

    @abstractmethod
    def losses(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Compute the loss [B] of samples, differentiably; outputs [B, C] or [B, length, C], targets [B, ...]."""

    @abstractmethod
    def scores(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Compute the score [B] of samples; arguments as for `losses`."""

    def fitted(self, data: Data) -> Self:
        """Return the task fitted to the data, for example to the targets' scale."""
        return self

    def kinds(self, y: np.ndarray) -> np.ndarray:
        """Return the kind of each sample, from 0, [n] int64; in classification its label.

        Partitions deal samples by kind, and a session is tested on the kinds that its devices hold.
        """
        return np.zeros(len(y), np.int64)

    def loss(self, outputs: Tensor, y: Tensor, reduction: Reduction) -> Tensor:
        """Compute the loss of samples, reduced over them, or [B] without a reduction."""
        losses = self.losses(outputs, y)
        return losses if reduction == "none" else losses.sum() if reduction == "sum" else losses.mean()

    def total(self, outputs: Tensor, y: Tensor) -> float:
        """Compute the sum of the samples' scores."""
        return float(in_double(self.scores(outputs, y)).sum())

    def further(self, loss: float) -> Mapping[str, float]:
        """Return the values of `columns`, given the mean loss on the test data."""
        return {}

    def scaling(self) -> tuple[float, float]:
        """Return (mean, std): a target is mean + std x output."""
        return 0.0, 1.0
