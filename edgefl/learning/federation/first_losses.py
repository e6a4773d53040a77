"""Compute the losses of models on the first mini-batch of each device in a round."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.func import functional_call

from edgefl.contract import LocalRound
from edgefl.learning.data.batches import Batches
from edgefl.learning.federation.federation import RoundFacts
from edgefl.learning.federation.trainer import Trainer
from edgefl.learning.updates.updates import TrainedRound


def losses_received(trainer: Trainer, trained: TrainedRound) -> tuple[float | None, ...]:
    """Compute the received model's loss on each device's first mini-batch in a round; None without data."""
    batches = trained.batches
    assert batches is not None
    positions = np.flatnonzero(batches.steps).tolist()
    losses = iter(_first_losses(trainer, trained.received_by(positions), batches, positions))
    return tuple(next(losses) if steps else None for steps in batches.steps)


def compare(
    trainer: Trainer, ids: Sequence[int], facts: RoundFacts, models: Sequence[Tensor]
) -> tuple[LocalRound, list[dict[int, float]]]:
    """Compute the losses of models [M + Q] on each device's first mini-batch, by device, without training.

    If all costs are counted, devices receive the models, run a forward pass of each, and send one number per model;
    otherwise the transfer of one model in each direction and one step are booked.
    """
    ids, cost, drawn_by = sorted(ids), trainer.settings.cost, trainer.work
    batches = drawn_by.draw(ids, trainer.samples(ids, facts.moment), facts)
    positions = np.flatnonzero(batches.steps).tolist()
    losses = [
        dict(zip((ids[k] for k in positions), _first_losses(trainer, model, batches, positions), strict=True))
        for model in models
    ]
    steps = np.minimum(batches.steps, 1)
    sizes = trainer.layout.parameters.size, trainer.layout.statistics.size
    down_bits, up_bits = len(models) * cost.bits(*sizes, 1), len(models) * cost.bits_per_parameter
    if cost.payload == "model":
        down_bits = up_bits = cost.bits(*sizes, trainer.settings.algorithm.vectors_up)
    once = batches.processed(steps)
    work = (0 * once, len(models) * once) if drawn_by.how_booked == "all" else (once,)
    counted = drawn_by.booked(steps, *work)
    bits = (down_bits,) * len(ids), (up_bits,) * len(ids)
    return LocalRound(tuple(ids), tuple(steps.tolist()), counted, *bits), losses


@torch.no_grad()
def _first_losses(
    trainer: Trainer, models: Tensor, batches: Batches, positions: Sequence[int]
) -> list[float]:
    """Compute the mean loss of these models on each device's first mini-batch, before any local step.

    Args:
        models: one model for all of these devices [M + Q], or one model for each device [n, M + Q].
        positions: [n] positions of the devices in `batches`; each has at least one batch.
    """
    losses, train = [], trainer.training_data.train
    for k, position in enumerate(positions):
        size = batches.sizes[position, 0]
        rows = torch.from_numpy(batches.rows[position, 0, :size]).to(train.x.device)
        tensors = trainer.layout.views(models if models.dim() == 1 else models[k])
        logits = functional_call(trainer.module, tensors, (train.normalised(rows),))
        losses.append(train.task.loss(logits, train.y[rows], "mean"))
    return torch.stack(losses).tolist() if losses else []
