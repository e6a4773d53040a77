"""Compute the gradient of a model's loss on all samples of a device."""

import torch
from torch import Tensor, nn
from torch.func import functional_call

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.modules.parameters import ModelLayout

AT_ONCE = 2048  # number of samples computed at a time, to bound memory


def whole_gradient(
    module: nn.Module, layout: ModelLayout, model: Tensor, split: SplitInMemory, rows: Tensor
) -> tuple[float, Tensor]:
    """Return the mean loss of a model [M + Q] over samples [n], and the loss's gradient [M], in evaluation mode."""
    parameters, statistics = layout.split(model)
    parameters = parameters.detach().clone().requires_grad_()
    tensors = {**layout.parameters.views(parameters), **layout.statistics.views(statistics)}
    total, slope = 0.0, torch.zeros_like(parameters)
    with torch.enable_grad():
        for some in rows.split(AT_ONCE):
            logits = functional_call(module, tensors, (split.normalised(some),))
            loss = split.task.loss(logits, split.y[some], "sum")
            (part,) = torch.autograd.grad(loss, parameters, retain_graph=len(rows) > AT_ONCE)
            total, slope = total + float(loss.detach()), slope + part
    return total / len(rows), slope / len(rows)
