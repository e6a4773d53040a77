"""Test that padding that is common to all devices of a chunk in a step is neither read nor multiplied."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from edgefl.learning.algorithms import Algorithm
from edgefl.learning.algorithms.fedprox import FedProx
from edgefl.learning.algorithms.moon import Moon
from edgefl.learning.data.batches import draw_batches
from edgefl.learning.data.data_in_memory import SampleReader, SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.local import gradients
from edgefl.learning.local.local_task import LocalTask
from edgefl.learning.local.local_training import LocalTraining
from edgefl.learning.local.update_rule import UpdateRule
from edgefl.learning.models import _logistic_steps
from edgefl.learning.models.logistic import Logistic
from edgefl.learning.modules.module_facts import EXAMPLES

SAMPLES, SIDE, CLASSES, BATCH = 200, 16, 10, 128
ROUNDING = 1e-5  # float32 training of a few steps with sums in a different order; models are of order 1

rng = np.random.default_rng(0)
DATA = SplitInMemory(
    Split(rng.integers(0, 256, (SAMPLES, SIDE, SIDE), dtype=np.uint8), rng.integers(0, CLASSES, SAMPLES)),
    np.array([100.0]),
    np.array([50.0]),
    torch.device("cpu"),
)


def trained(algorithm: Algorithm, held: list[int]) -> Tensor:
    """Return the local models after two epochs, of devices with these numbers of samples."""
    model = Logistic()
    torch.manual_seed(0)
    module = model.build((SIDE, SIDE), CLASSES)
    train = LocalTraining(model, module, DATA, UpdateRule(0.9))
    own = [np.arange(count) for count in held]
    steps = [2 * -(-count // BATCH) for count in held]
    batches = draw_batches(own, steps, BATCH, [np.random.default_rng(k) for k in range(len(held))])
    start = train.layout.flatten(module)
    previous = start + torch.randn(len(held), len(start)) / 100
    task = LocalTask(start, batches, 0.01, algorithm, previous=lambda positions: previous[list(positions)])
    return train.run(task).rows.clone()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """Record the shapes in which samples are read, except in the trial step before training."""
    shapes: list[tuple[int, ...]] = []
    raw = SampleReader.raw

    def noting(self: Any, rows: Tensor, views: Tensor | None = None) -> Tensor:
        if rows.shape != (1, EXAMPLES):
            shapes.append(tuple(rows.shape))
        return raw(self, rows, views)

    monkeypatch.setattr(SampleReader, "raw", noting)
    return shapes


def test_an_epochs_last_batch_is_read_as_wide_as_the_fullest(asked: list[tuple[int, ...]]) -> None:
    """Batches of 22, 45 and 90 samples have width 96; after the device with 90 is done, the width is 48."""
    trained(FedProx(), [150, 173, 90])
    assert asked == [(3, 128), (3, 96), (2, 128), (2, 48)]


@pytest.mark.parametrize("algorithm", [FedProx(), Moon()], ids=["fedprox", "moon"])
def test_padding_does_not_matter(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = trained(algorithm, [150, 173, 90])
    monkeypatch.setattr(gradients, "NARROWED_UP_TO", 0)
    wide = trained(algorithm, [150, 173, 90])
    assert bool(narrow.isfinite().all())
    assert float((narrow - wide).abs().max()) < ROUNDING


def test_small_products_keep_padding(asked: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Small products keep their padding, as BLAS uses other kernels for small shapes, which round differently."""
    monkeypatch.setattr(gradients, "NARROWED_FROM", SIDE * SIDE + 1)
    trained(FedProx(), [150])
    assert asked == [(1, 128)] * 4


@pytest.mark.parametrize("algorithm", [FedProx(), Moon()], ids=["fedprox", "moon"])
def test_blocks_do_not_matter(
    algorithm: Algorithm, asked: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Devices read in pairs, with the width of the larger batch, have the same models as devices read together."""
    held = [150, 173, 90, 130]
    together = trained(algorithm, held)
    asked.clear()
    for name in ("CPU_BLOCK_BYTES", "CPU_BLOCK_BYTES_WITH_TERMS"):
        monkeypatch.setattr(_logistic_steps, name, 2 * 4 * BATCH * SIDE**2)
    in_pairs = trained(algorithm, held)
    assert asked == [
        *((2, 128), (2, 128)),  # devices with 150 and 173 samples, then with 130 and 90
        *((2, 48), (2, 96)),  # batches of 22 and 45 samples, then of 2 and 90 (in its second epoch)
        *((2, 128), (1, 128)),
        *((2, 48), (1, 16)),
    ]
    assert float((in_pairs - together).abs().max()) < ROUNDING
