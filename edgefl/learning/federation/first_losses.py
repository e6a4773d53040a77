"""The losses of models on the first mini-batch of each device of a round."""

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from edgefl.contract import LocalRound
from edgefl.learning.data.batches import Batches
from edgefl.learning.federation.federation import RoundFacts
from edgefl.learning.federation.round_work import booked
from edgefl.learning.federation.trainer import Trainer
from edgefl.learning.scores.evaluation import first_batch_losses
from edgefl.learning.updates.updates import TrainedRound


def losses_received(trainer: Trainer, trained: TrainedRound) -> tuple[float | None, ...]:
    """Compute the received model's loss on each device's first mini-batch of a round; None: no data."""
    batches = trained.batches
    assert batches is not None
    positions = np.flatnonzero(batches.steps).tolist()
    losses = iter(_first_losses(trainer, trained.received_by(positions), batches, positions))
    return tuple(next(losses) if steps else None for steps in batches.steps)


def compare(
    trainer: Trainer, ids: Sequence[int], facts: RoundFacts, models: Sequence[Tensor]
) -> tuple[LocalRound, list[dict[int, float]]]:
    """Compute models' [M + Q] losses on each device's first mini-batch, by device; nothing is trained.

    Where all is counted, devices receive the models and send a number for each, and run them forward only; else a
    model goes each way, and a step is computed.
    """
    ids, payload, settings = sorted(ids), trainer.payload, trainer.settings
    batches = trainer.work.draw(ids, trainer.samples(ids, facts.moment), facts)
    positions = np.flatnonzero(batches.steps).tolist()
    losses = [
        dict(zip((ids[k] for k in positions), _first_losses(trainer, model, batches, positions), strict=True))
        for model in models
    ]
    steps, down_bits, up_bits = np.minimum(batches.steps, 1), trainer.payload_bits, trainer.payload_bits
    if payload.exchanged:
        sizes = trainer.layout.parameters.size, trainer.layout.statistics.size
        down_bits = len(models) * payload.bits(*sizes, 1)
        up_bits = len(models) * payload.bits_per_parameter
    once = batches.processed(steps)
    work = (0 * once, len(models) * once) if settings.cost.booked == "all" else (once,)
    counted = booked(settings, steps, *work)
    bits = (down_bits,) * len(ids), (up_bits,) * len(ids)
    return LocalRound(tuple(ids), tuple(steps.tolist()), counted, *bits), losses


def _first_losses(
    trainer: Trainer, models: Tensor, batches: Batches, positions: Sequence[int]
) -> list[float]:
    data = trainer.training_data.train
    return first_batch_losses(trainer.module, trainer.layout, models, data, batches, positions)
