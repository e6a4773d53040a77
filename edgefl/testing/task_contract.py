"""Check the contract of tasks, on losses and scores of each sample, and on gradients of stacked devices."""

import numpy as np
import torch
from torch.func import grad, vmap

from edgefl.errors import EdgeflError
from edgefl.learning.datasets import Data, Split
from edgefl.learning.tasks import Task
from edgefl.testing.conformance import must, must_be_shaped

SAMPLES, DEVICES, OUTPUTS, LENGTH = 24, 3, 4, 5


def tasks(task: Task) -> None:
    """Check that a task accepts some kind of targets, and that a sample's loss and score ignore other samples."""
    taken = [data for data in _examples() if _takes(task, data)]
    must(
        taken,
        "check() refuses labels [n] int64, values [n] float32, zeros and ones [n, L] float32, and token labels"
        " [n, length] int64: accept one of these, and raise an EdgeflError with the reason for the others",
    )
    must(task.score.isidentifier() and task.score != "loss", f"score is {task.score!r}: use a column's name")
    for data in taken:
        _keeps(task.fitted(data), data)


def _examples() -> list[Data]:
    """Return four example data sets: labels, values, several labels per sample, and a label per text position."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(SAMPLES, 2)).astype(np.float32)
    found = []
    for y in (
        rng.permutation(np.arange(SAMPLES) % OUTPUTS),
        rng.normal(size=SAMPLES).astype(np.float32),
        (rng.random((SAMPLES, OUTPUTS)) < 0.5).astype(np.float32),
    ):
        outputs = 1 if y.ndim == 1 and y.dtype == np.float32 else OUTPUTS
        found.append(Data.unscaled(Split(x, y), Split(x, y), tuple(map(str, range(outputs)))))
    text = Split(rng.integers(0, OUTPUTS, (SAMPLES, LENGTH)), rng.integers(0, OUTPUTS, (SAMPLES, LENGTH)))
    found.append(Data.unscaled(text, text, tuple(map(str, range(OUTPUTS)))))
    return found


def _takes(task: Task, data: Data) -> bool:
    try:
        task.check(data)
    except EdgeflError:
        return False
    return True


def _keeps(task: Task, data: Data) -> None:
    kinds = task.kinds(data.train.y)
    must(
        kinds.shape == (SAMPLES,) and kinds.dtype == np.int64 and kinds.min() >= 0,
        "kinds() must return one kind per sample, [n] int64 from 0",
    )
    y = torch.from_numpy(data.train.y)
    positions = (LENGTH,) if task.per_position else ()
    shape = (SAMPLES, *positions, data.num_classes)
    outputs = torch.randn(shape, generator=torch.Generator().manual_seed(1))
    losses, scores = task.losses(outputs, y), task.scores(outputs, y)
    differentiable = task.losses(outputs.clone().requires_grad_(), y).requires_grad
    must(differentiable, "losses() does not depend on the outputs by differentiable operations of torch")
    for name, values in (("losses", losses), ("scores", scores)):
        must_be_shaped(f"{name}()", values, (SAMPLES,), "return one per sample, [B]")
        must(bool(values.double().isfinite().all()), f"{name}() returned numbers that are not finite")
        function = getattr(task, name)
        alone = torch.cat([function(outputs[k : k + 1], y[k : k + 1]) for k in range(SAMPLES)])
        must(
            torch.allclose(alone.double(), values.double(), atol=1e-6),
            f"{name}() of a sample depends on other samples",
        )
    must(float(scores.double().max()) <= 1 + 1e-6, "a score is above 1: 1 must be perfect, and higher better")
    further = dict(task.further(float(losses.mean())))
    must(
        set(further) == set(task.columns),
        f"further() returned {sorted(further)}, but columns are {task.columns}",
    )
    many, targets = outputs.unflatten(0, (DEVICES, -1)), y.unflatten(0, (DEVICES, -1))
    each = grad(lambda out, of: task.losses(out, of).sum())
    together = vmap(each)(many, targets)
    one_by_one = torch.stack([each(out, of) for out, of in zip(many, targets, strict=True)])
    must(
        torch.allclose(together, one_by_one, atol=1e-6),
        "gradients of losses() differ if devices are stacked by torch.func.vmap: use tensor operations only",
    )
