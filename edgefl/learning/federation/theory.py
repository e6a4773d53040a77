"""Measure the quantities in the convergence bound, Theorem 1 of the journal paper, on the devices' data.

Measuring changes neither simulated time nor joules nor the random streams of training.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.local.whole_gradient import whole_gradient
from edgefl.learning.modules.parameters import ModelLayout

if TYPE_CHECKING:
    from edgefl.learning.federation.federation import At
    from edgefl.learning.federation.trainer import Trainer
    from edgefl.learning.updates.updates import TrainedRound

COLUMNS = (
    "theory_lr",
    "theory_loss",  # F at the model that the round started from, over the participants' data
    "theory_loss_after",  # F at the model that the round made
    "theory_gradient2",  # |grad F|^2 at the model that the round started from
    "theory_gradient2_devices",  # sum_k a_k |grad F_k|^2, a_k = D_k / D
    "theory_smoothness",  # largest |grad F_k(w') - grad F_k(w)| / |w' - w|: a lower bound of beta
    "theory_noise_steps",  # sum_k a_k e_k (1 - B_k / D_k) sigma_k^2 / B_k
    "theory_noise_drift",  # sum_k a_k (e_k - 1) (1 - B_k / D_k) sigma_k^2 / B_k
    "theory_steps_min",
    "theory_steps_max",
)

SAMPLES = 32  # number of samples of each device from which the variance of the gradient noise is estimated


def measure(trainer: "Trainer", last: "TrainedRound", made: Tensor, at: "At") -> dict[str, float | None]:
    """Measure a round's gradients on all data of its participants, at the round's start model and at `made`.

    sigma_k^2 is the variance of a device's per-sample gradients, estimated from SAMPLES samples. Measuring takes as
    much wall time as about two passes over all participants' data. All participants started from one model; settings
    with several models cannot be combined with `learning.theory`. The result is empty if no participant has data.
    """
    positions = last.trained
    if last.batches is None or not positions:
        return dict.fromkeys(COLUMNS)
    assert last.start.dim() == 1
    module, layout, split = trainer.module, trainer.layout, trainer.training_data.train
    rows = [torch.from_numpy(last.batches.samples[k]).to(split.y.device) for k in positions]
    before = [whole_gradient(module, layout, last.start, split, own) for own in rows]
    after = [whole_gradient(module, layout, made, split, own) for own in rows]
    sizes = np.array([len(own) for own in rows], dtype=float)
    steps = np.array([last.models.steps[k] for k in positions], dtype=float)
    batch = np.minimum(trainer.settings.local.batch, sizes)
    variances = []
    for k, own in zip(positions, rows, strict=True):
        order = trainer.streams("theory", last.ids[k], *at).permutation(len(own))
        some = own[torch.from_numpy(order[:SAMPLES]).to(own.device)]
        variances.append(_variance(module, layout, last.start, split, some))
    shares = sizes / sizes.sum()
    noise = shares * (1 - batch / sizes) * np.array(variances) / batch
    moved = float((layout.split(made)[0] - layout.split(last.start)[0]).norm())
    columns = {
        "theory_lr": float(last.lr),
        "theory_loss": float(shares @ [loss for loss, _ in before]),
        "theory_loss_after": float(shares @ [loss for loss, _ in after]),
        **of_gradients([g for _, g in before], [g for _, g in after], shares, moved),
        "theory_noise_steps": float(noise @ steps),
        "theory_noise_drift": float(noise @ (steps - 1)),
        "theory_steps_min": float(steps.min()),
        "theory_steps_max": float(steps.max()),
    }
    return {name: columns[name] for name in COLUMNS}


def of_gradients(
    before: Sequence[Tensor], after: Sequence[Tensor], shares: np.ndarray, moved: float
) -> dict[str, float | None]:
    """Return squared norms of gradients, and the largest secant slope of devices' gradients and of their mean.

    Args:
        before, after: gradients of each device's loss at the first and at the second model, [M] each.
        shares: the devices' shares a_k, which sum to one.
        moved: distance between the two models; if it is 0, the slope is None.
    """
    weights = torch.as_tensor(shares).to(before[0])
    mean = [weights @ torch.stack(list(some)) for some in (before, after)]
    changes = [float((g - h).norm()) for g, h in zip((*after, mean[1]), (*before, mean[0]), strict=True)]
    return {
        "theory_gradient2": float(mean[0].square().sum()),
        "theory_gradient2_devices": float(shares @ [float(g.square().sum()) for g in before]),
        "theory_smoothness": max(changes) / moved if moved else None,
    }


def _variance(
    module: nn.Module, layout: ModelLayout, model: Tensor, split: SplitInMemory, rows: Tensor
) -> float:
    """Return the sample variance of per-sample gradients, summed over coordinates; 0 for a single sample."""
    if len(rows) < 2:
        return 0.0
    each = torch.stack([whole_gradient(module, layout, model, split, row[None])[1] for row in rows])
    return float(each.var(dim=0, correction=1).sum())
