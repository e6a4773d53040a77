"""Test when concept drift happens, for which devices, how data change, and how the learner reacts."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch

from edgefl.config import registry
from edgefl.config.component import build
from edgefl.learning.data.data_in_memory import SplitInMemory
from edgefl.learning.datasets import Split
from edgefl.learning.drifts import Drift, Moment
from edgefl.learning.drifts.noise import Noise
from edgefl.learning.federation.drifting import Drifting, both_concepts
from edgefl.learning.partitions import PartitionInputs
from edgefl.rng import Streams
from tests.refusals import refused_at
from tests.tools.constants import made

CPU = torch.device("cpu")
LABELS = 10


def drift(name: str = "label_swap", **parameters: Any) -> Drift:
    return build(registry.get("drifts", name), parameters)


def share(one: Drift, round_: int) -> float:
    return one.drifted_share(Moment(round_, 0.0))


def test_flash_schedules() -> None:
    """FLASH, section 5.1, has these schedules: sudden at 500, 20 % more every 100 rounds, or back at 800."""
    sudden = drift(at=500)
    assert [share(sudden, r) for r in (1, 499, 500, 10_000)] == [0, 0, 1, 1]
    incremental = drift(pattern="incremental", at=500, every=100)
    shares = [share(incremental, r) for r in (499, 500, 599, 600, 700, 800, 899, 900, 2000)]
    assert shares == pytest.approx([0, 0.2, 0.2, 0.4, 0.6, 0.8, 0.8, 1, 1])
    recurrent = drift(pattern="recurrent", at=500, every=300)
    assert [share(recurrent, r) for r in (499, 500, 799, 800, 1099, 1100)] == [0, 1, 1, 0, 0, 1]
    assert share(drift(pattern="incremental", at=1, share=0.3), 101) == 0.3


def test_a_drift_in_seconds_looks_at_the_clock_only() -> None:
    one = drift(clock="seconds", at=60.0, pattern="recurrent", every=30.0)
    shares = [one.drifted_share(Moment(1, t)) for t in (0.0, 59.9, 60.0, 89.9, 90.0, 120.0)]
    assert shares == [0, 0, 1, 1, 0, 1]


def test_more_devices_join_those_that_have_drifted() -> None:
    """An incremental drift never takes a device back, and counts are exact."""
    incremental = drift(pattern="incremental", at=1, every=1)
    concepts = Drifting.of(incremental, PartitionInputs(), 10, 0, Streams(3))
    drifted = [concepts.drifted(range(10), Moment(round_, 0.0)) for round_ in range(1, 7)]
    assert [int(d.sum()) for d in drifted] == [2, 4, 6, 8, 10, 10]
    assert all((later | earlier == later).all() for earlier, later in pairwise(drifted))


def test_cells() -> None:
    for cell, expected in ((0, 0), (4, 7)):
        in_cells = Drifting.of(drift(at=1, cells=[4]), PartitionInputs(), 7, cell, Streams(3))
        assert int(in_cells.drifted(range(7), Moment(1, 0.0)).sum()) == expected
        assert in_cells.column([2, 5], Moment(1, 0.0)) == {
            "drifted": expected / 7,
            "drift_share": expected / 7,
        }


def test_the_drifts_share_does_not_depend_on_the_devices_present() -> None:
    half = Drifting.of(drift(at=2, share=0.5), PartitionInputs(), 10, 0, Streams(3))
    (one,) = np.flatnonzero(half.drifted(range(10), Moment(2, 0.0)))[:1].tolist()
    assert half.column([one], Moment(1, 0.0)) == {"drifted": 0.0, "drift_share": 0.0}
    assert half.column([one], Moment(2, 0.0)) == {"drifted": 1.0, "drift_share": 0.5}
    assert half.column([], Moment(2, 0.0)) == {"drifted": 0.0, "drift_share": 0.5}


def test_home_sites_are_the_nearest() -> None:
    inputs = PartitionInputs(
        positions_m=np.array([[1.0, 0], [90, 0]]), sites_m=np.array([[0.0, 0], [100, 0]])
    )
    assert inputs.home_sites().tolist() == [0, 1]


@pytest.mark.parametrize(
    ("labels", "after"), [([0, 1, 2, 3], [1, 0, 3, 2]), ([0, 1, 2, 3, 4], [1, 0, 3, 2, 4])]
)
def test_labels_swap_two_by_two(labels: list[int], after: list[int]) -> None:
    split = Split(np.zeros((len(labels), 2), np.float32), np.array(labels))
    changed = drift().change(split, len(labels))
    assert changed.y.tolist() == after
    assert changed.x is split.x  # not copied


def test_images_turn() -> None:
    x = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3)
    changed = drift("rotation").change(Split(x, np.zeros(2, np.int64)), LABELS)
    assert changed.x[1, 0].tolist() == x[1, :, 2].tolist()  # turned anticlockwise, the right column is on top
    once = drift("rotation").change(Split(x[None], np.zeros(1, np.int64)), LABELS)  # a colour image
    twice = drift("rotation").change(once, LABELS)
    assert np.array_equal(twice.x, x[None, :, ::-1, ::-1])


SAMPLES, STD = 5000, 0.5


def test_noise_has_the_stated_deviation() -> None:
    """Each column's noise is relative to this column, however large the other columns are, in any order of samples.

    The standard deviation of n values is right within five standard errors of sigma / sqrt(2 n).
    """
    x = np.random.default_rng(0).normal(3.0, [2.0, 2000.0, 0.002, 0.0], (SAMPLES, 4)).astype(np.float32)
    x = x[x[:, 0].argsort()]
    changed = drift("noise").change(Split(x, np.zeros(SAMPLES, np.int64)), LABELS)
    added = (changed.x - x).astype(float)
    sigma = STD * x.astype(float).std(0)
    assert added.std(0)[:3] == pytest.approx(sigma[:3], rel=5 / np.sqrt(2 * SAMPLES))
    assert (abs(added.mean(0))[:3] < 5 * sigma[:3] / np.sqrt(SAMPLES)).all()
    assert not added[:, 3].any()


def test_noisy_images_stay_images() -> None:
    x = np.full((4, 8, 8), 250, np.uint8)
    x[0, 0, 0] = 0
    changed = made(Noise, std=3.0).change(Split(x, np.zeros(4, np.int64)), LABELS)
    assert changed.x.dtype == np.uint8
    assert changed.x.max() == 255  # pixels do not overflow
    assert (changed.x > 128).mean() > 0.9


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("rotation", np.zeros((3, 60), np.float32)),
        ("rotation", np.zeros((3, 4, 6), np.uint8)),
        ("noise", np.zeros((3, 80), np.uint8)),
        ("noise", np.zeros((3, 80), np.int16)),
    ],
)
def test_data_that_cannot_change_so(name: str, x: np.ndarray) -> None:
    with refused_at("", "label_swap"):
        drift(name).change(Split(x, np.zeros(3, np.int64)), LABELS)


@pytest.mark.parametrize("name", ["label_swap", "rotation"])
def test_sample_n_plus_i_is_sample_i_after_the_drift(name: str) -> None:
    rng = np.random.default_rng(1)
    split = Split(rng.integers(0, 256, (6, 4, 4), dtype=np.uint8), np.array([0, 1, 2, 3, 0, 1]))
    changed, both = drift(name).change(split, 4), both_concepts(drift(name), split, 4)
    memory = SplitInMemory(both, np.array(0, np.float32), np.array(1, np.float32), CPU, count=6)
    rows = torch.tensor([[0, 6], [5, 11]])
    x = memory.normalised(rows).numpy()
    assert np.array_equal(x[:, 0], split.x[[0, 5]].astype(np.float32))
    assert np.array_equal(x[:, 1], changed.x[[0, 5]].astype(np.float32))
    assert memory.y[rows].tolist() == [[split.y[0], changed.y[0]], [split.y[5], changed.y[5]]]
    # `with_labels` finds samples by their labels before the drift
    assert memory.with_labels([1]).tolist() == [1, 5]
    reader = memory.readers(1)[0]
    assert reader.raw_between(4, 9).tolist() == reader.raw(torch.arange(4, 9)).tolist()
    for lap, of in enumerate((split, changed)):
        assert np.array_equal(memory.lap(lap).ready([1]).numpy(), of.x[[1, 5]].astype(np.float32))


def test_devices_drift_in_an_order_of_the_seed() -> None:
    orders = [Streams(seed)("drift").permutation(50) for seed in (1, 1, 2)]
    assert orders[0].tolist() == orders[1].tolist() != orders[2].tolist()
