"""What is written down of each device's local training, where it is asked for."""

import numpy as np
from torch import Tensor

from edgefl.contract import REPORTED_NORM
from edgefl.learning.federation.trainer import EPOCHS, Trainer
from edgefl.learning.scores.device_tests import score
from edgefl.learning.updates.updates import TrainedRound

LOSS_BEFORE, LOSS_AFTER, UPDATE_NORM = "loss_before", "loss_after", REPORTED_NORM
COLUMNS = (LOSS_BEFORE, LOSS_AFTER, UPDATE_NORM, EPOCHS)


def measure(
    trainer: Trainer, trained: TrainedRound, received: Tensor, local: Tensor
) -> dict[str, tuple[float | None, ...]]:
    """Return columns of devices.csv about a round's local training, None for a device without data.

    loss_before, loss_after: mean loss of the received and of the local model on the samples in the device's
    mini-batches of the round, each once, without the algorithm's further terms. update_norm: length of the change of
    the trained parameters. epochs: local steps over those of one pass.

    Args:
        received: [M + Q] or [K, M + Q] what the devices began with.
        local: [K, M + Q] what they came to.
    """
    batches, steps = trained.batches, trained.models.steps
    assert batches is not None
    samples = []
    for k, done in enumerate(steps.tolist()):
        taken = np.arange(batches.rows.shape[2]) < batches.sizes[k, :done, None]
        samples.append(np.unique(batches.rows[k, :done][taken]))
    data = trainer.training_data.train
    before, after = (
        score(trainer.tester, models, data, samples).loss.tolist() for models in (received, local)
    )
    numbers = {
        LOSS_BEFORE: before,
        LOSS_AFTER: after,
        UPDATE_NORM: norms(trainer, received, local),
        EPOCHS: (steps / np.maximum(1, batches.per_epoch)).tolist(),
    }
    return {
        name: tuple(value if done else None for value, done in zip(values, steps.tolist(), strict=True))
        for name, values in numbers.items()
    }


def norms(trainer: Trainer, received: Tensor, local: Tensor) -> tuple[float, ...]:
    """Return the length of each device's change of the trained parameters.

    Args:
        received: [M + Q] or [K, M + Q] what the devices began with.
        local: [K, M + Q] what they came to.
    """
    change = trainer.layout.split(local)[0] - trainer.layout.split(received)[0]
    return tuple(change.double().norm(dim=1).tolist())
