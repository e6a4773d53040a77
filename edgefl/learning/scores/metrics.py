"""Compute extra metrics of the global model on test data, columns of rounds.csv besides accuracy and loss."""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.objective import CLASSIFICATION
from edgefl.learning.scores.tester import ModelTester
from edgefl.learning.tensors import in_double

Name = Literal["top5", "macro_f1", "auc", "perplexity"]
BEST = 5


@torch.no_grad()
def measure(
    names: Sequence[Name], tester: ModelTester, model: Tensor, test: SplitInMemory, labels: Sequence[int]
) -> dict[str, float]:
    """Compute the named metrics of a model [M + Q] on the test samples with these labels."""
    blocks = tester.of_labels(model, test, labels, lambda outputs, y: (in_double(outputs), y))
    logits, y = (torch.cat(column) for column in zip(*blocks, strict=True))
    return {name: METRICS[name](logits, y.to(logits.device)) for name in names}


def _top5(logits: Tensor, y: Tensor) -> float:
    """Return the share of samples with their label among the five largest logits [n, C], C > 5."""
    return float((logits.topk(BEST, dim=1).indices == y[:, None]).any(1).sum()) / len(y)


def _macro_f1(logits: Tensor, y: Tensor) -> float:
    """Return the mean over all occurring labels of F1 = 2 TP / (2 TP + FP + FN)."""
    found, scores = logits.argmax(1), []
    for label in torch.unique(y).tolist():
        right = float(((found == label) & (y == label)).sum())
        scores.append(2 * right / float((found == label).sum() + (y == label).sum()))
    return sum(scores) / len(scores)


def _auc(logits: Tensor, y: Tensor) -> float:
    """Return the mean over all occurring labels of the area under the ROC curve, one label against all others.

    The area is the probability that a sample of the label has a larger softmax output for this label than a sample of
    another label; equal outputs count half (Hanley and McNeil, 1982). NaN if only one label occurs.
    """
    outputs, areas = logits.softmax(1), []
    for label in torch.unique(y).tolist():
        mine = y == label
        positives, negatives = int(mine.sum()), int((~mine).sum())
        if not negatives:
            return float("nan")
        _, place, count = torch.unique(outputs[:, label], return_inverse=True, return_counts=True)
        ends = in_double(count.cumsum(0))
        ranks = (ends - (count - 1) / 2)[place]  # equal outputs get their mean rank, from 1
        area = float(ranks[mine].sum()) - positives * (positives + 1) / 2
        areas.append(area / (positives * negatives))
    return sum(areas) / len(areas)


def _perplexity(logits: Tensor, y: Tensor) -> float:
    """Return the perplexity, which is the exponential of the mean cross-entropy."""
    return float(CLASSIFICATION.loss(logits, y, "mean").exp())


METRICS = {"top5": _top5, "macro_f1": _macro_f1, "auc": _auc, "perplexity": _perplexity}
