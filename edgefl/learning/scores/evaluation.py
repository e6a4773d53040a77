"""Test models on the test data of some labels."""

from collections.abc import Sequence

from torch import Tensor

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.scores.tester import ModelTester


def evaluate(
    tester: ModelTester, model: Tensor, test: SplitInMemory, labels: Sequence[int]
) -> tuple[float, float]:
    """Return a model's [M + Q] accuracy, or the score of its task, and mean loss on test samples of these labels."""
    task = test.task

    def sums(outputs: Tensor, y: Tensor) -> tuple[float, float, int]:
        return task.total(outputs, y), float(task.loss(outputs, y, "sum")), len(y)

    blocks = tester.of_labels(model, test, labels, sums)
    score, loss, count = (sum(column) for column in zip(*blocks, strict=True))
    return score / count, loss / count
