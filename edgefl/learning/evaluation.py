"""Testing a model: on the test data of some labels, or on what devices train on."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional

from edgefl.learning.batches import Batches
from edgefl.learning.data_in_memory import SplitInMemory
from edgefl.learning.parameters import ModelLayout

BATCH = 2048  # bounds memory; the result does not depend on it beyond rounding


@torch.no_grad()
def evaluate(
    module: nn.Module, layout: ModelLayout, model: Tensor, test: SplitInMemory, labels: Sequence[int]
) -> tuple[float, float]:
    """Accuracy (0 to 1) and mean cross-entropy of model [M + Q] on the test samples with these labels.

    The module must be in evaluation mode.
    """
    tensors = layout.views(model)
    correct = count = 0
    loss = 0.0
    for x, y in test.batches(labels, BATCH):
        logits = functional_call(module, tensors, (x,))
        correct += int((logits.argmax(1) == y).sum())
        loss += float(functional.cross_entropy(logits, y, reduction="sum"))
        count += len(y)
    return correct / count, loss / count


@torch.no_grad()
def first_batch_losses(
    module: nn.Module,
    layout: ModelLayout,
    models: Tensor,
    train: SplitInMemory,
    batches: Batches,
    devices: Sequence[int],
) -> list[float]:
    """Mean cross-entropy of each device's first mini-batch, before any local step.

    The module must be in evaluation mode.

    Args:
        models: [M + Q] for all, or [n, M + Q] one for each of these devices.
        devices: their positions in `batches`; each has a batch.
    """
    found = []
    for k, device in enumerate(devices):
        size = batches.sizes[device, 0]
        rows = torch.from_numpy(batches.rows[device, 0, :size]).to(train.x.device)
        tensors = layout.views(models if models.dim() == 1 else models[k])
        logits = functional_call(module, tensors, (train.normalised(rows),))
        found.append(functional.cross_entropy(logits, train.y[rows]))
    return torch.stack(found).tolist() if found else []
