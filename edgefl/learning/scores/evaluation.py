"""Testing models on the test data of some labels."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.scores.tester import ModelTester


def evaluate(
    tester: ModelTester, model: Tensor, test: SplitInMemory, labels: Sequence[int], drifted: bool = False
) -> tuple[float, float]:
    """Test a model [M + Q]: accuracy, or the score of its task, and mean loss on the test samples of these labels.

    Args:
        drifted: on these samples as they are after the drift.
    """
    task = test.task

    def sums(outputs: Tensor, y: Tensor) -> tuple[float, float, int]:
        return task.total(outputs, y), float(task.loss(outputs, y, "sum")), len(y)

    blocks = tester.of_labels(model, test, labels, sums, drifted)
    score, loss, count = (sum(column) for column in zip(*blocks, strict=True))
    return score / count, loss / count


def evaluate_mixed(
    tester: ModelTester,
    models: Tensor,
    test: SplitInMemory,
    labels: Sequence[int],
    drifted: np.ndarray,
) -> tuple[float, float]:
    """Test a model [M + Q], or one of each of K devices, [K, M + Q]: accuracy and mean loss over the devices.

    Args:
        drifted: [K] whether each device's data have drifted: it is tested on the samples as they are for it.
    """
    if models.dim() > 1:
        return _weighed(tester, _by_model(models, drifted), test, labels)
    share = float(drifted.mean()) if len(drifted) else 0.0
    about = (test, tuple(labels), share)
    return tester.once(models, about, lambda: _weighed(tester, [(models, 1.0, share)], test, labels))


def _weighed(
    tester: ModelTester,
    groups: Sequence[tuple[Tensor, float, float]],
    test: SplitInMemory,
    labels: Sequence[int],
) -> tuple[float, float]:
    """Return accuracy and mean loss over models, each with its share and that of its devices that have drifted."""
    tests = [
        (part * weight, evaluate(tester, one, test, labels, changed))
        for one, part, changed_of in groups
        for changed, weight in ((False, 1.0 - changed_of), (True, changed_of))
        if weight
    ]
    if len(tests) == 1:
        return tests[0][1]
    accuracy, loss = (sum(weight * result[i] for weight, result in tests) for i in (0, 1))
    return accuracy, loss


def _by_model(models: Tensor, drifted: np.ndarray) -> list[tuple[Tensor, float, float]]:
    """Group K devices by model [K, M + Q]: each model, its share of the devices, and the share of these drifted."""
    distinct, which = torch.unique(models, dim=0, return_inverse=True)
    of = which.cpu().numpy()
    return [(one, float((of == i).mean()), float(drifted[of == i].mean())) for i, one in enumerate(distinct)]
