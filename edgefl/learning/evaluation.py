"""Testing a model: on the test data of some labels, or on what devices train on."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call

from edgefl.learning import task
from edgefl.learning.batches import Batches
from edgefl.learning.data_in_memory import SplitInMemory
from edgefl.learning.parameters import ModelLayout

BATCH = 2048  # bounds memory; the result does not depend on it beyond rounding


@torch.no_grad()
def evaluate(
    module: nn.Module, layout: ModelLayout, model: Tensor, test: SplitInMemory, labels: Sequence[int]
) -> tuple[float, float]:
    """Accuracy (0 to 1) and mean loss of model [M + Q] on the test samples with these labels.

    The module must be in evaluation mode.
    """
    tensors = layout.views(model)
    correct = count = 0
    loss = 0.0
    for x, y in test.batches(labels, BATCH):
        logits = functional_call(module, tensors, (x,))
        correct += task.hits(logits, y)
        loss += float(task.loss(logits, y, "sum"))
        count += len(y)
    return correct / count, loss / count


@torch.no_grad()
def first_batch_losses(
    module: nn.Module,
    layout: ModelLayout,
    models: Tensor,
    train: SplitInMemory,
    batches: Batches,
    positions: Sequence[int],
) -> list[float]:
    """Mean loss of each device's first mini-batch, before any local step.

    The module must be in evaluation mode.

    Args:
        models: [M + Q] for all, or [n, M + Q] one for each of these devices.
        positions: of the devices in `batches`; each has a batch.
    """
    losses = []
    for k, position in enumerate(positions):
        size = batches.sizes[position, 0]
        rows = torch.from_numpy(batches.rows[position, 0, :size]).to(train.x.device)
        tensors = layout.views(models if models.dim() == 1 else models[k])
        logits = functional_call(module, tensors, (train.normalised(rows),))
        losses.append(task.loss(logits, train.y[rows], "mean"))
    return torch.stack(losses).tolist() if losses else []
