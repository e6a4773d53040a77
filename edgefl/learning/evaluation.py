"""Testing a model on the test data of some labels."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from edgefl.learning.device_data import DeviceSplit
from edgefl.learning.parameters import Layout

BATCH = 2048  # bounds memory; the result does not depend on it beyond rounding


@torch.no_grad()
def evaluate(
    module: nn.Module, layout: Layout, model: Tensor, test: DeviceSplit, labels: Sequence[int]
) -> tuple[float, float]:
    """Accuracy (0 to 1) and mean cross-entropy of model [M] on the test samples with these labels."""
    chosen = test.with_labels(labels)
    parameters = layout.views(model)
    correct, loss = 0, 0.0
    for rows in chosen.split(BATCH):
        y = test.y[rows]
        logits = functional_call(module, parameters, (test.normalised(rows),))
        correct += int((logits.argmax(1) == y).sum())
        loss += float(functional.cross_entropy(logits, y, reduction="sum"))
    return correct / len(chosen), loss / len(chosen)
