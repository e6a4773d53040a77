"""Test mini-batches: epochs without replacement, and the rules for devices with few samples."""

import numpy as np
import pytest

from edgefl.learning.data import batches
from edgefl.learning.data.batches import Batches, draw_batches, steps_per_epoch
from edgefl.learning.memory import Need


def draw(samples: np.ndarray, steps: int, batch: int, **options: int) -> Batches:
    return draw_batches([samples], [steps], batch, [np.random.default_rng(3)], **options)


def taken(plan: Batches, device: int = 0) -> list[np.ndarray]:
    """Return the samples of each step; check that padding follows them with weight 0."""
    found = []
    for step in range(plan.steps[device]):
        size = plan.sizes[device, step]
        assert (plan.weights[device, step, :size] > 0).all()
        assert not plan.weights[device, step, size:].any()
        assert not plan.rows[device, step, size:].any()
        found.append(plan.rows[device, step, :size])
    return found


@pytest.mark.parametrize(("held", "batch"), [(300, 128), (20, 128), (1, 4), (64, 32), (7, 3)])
def test_batches_are_epochs_without_replacement(held: int, batch: int) -> None:
    steps = 6
    samples = np.arange(1000, 1000 + held)
    plan = draw(samples, steps, batch)
    batches = taken(plan)
    per_epoch = -(-held // batch)
    assert steps_per_epoch(held, batch) == per_epoch
    for step, own in enumerate(batches):
        last_of_epoch = step % per_epoch == per_epoch - 1
        assert len(own) == (held - batch * (per_epoch - 1) if last_of_epoch else batch)
        assert plan.weights[0, step].sum() == pytest.approx(1.0)
    for epoch in range(steps // per_epoch):
        seen = np.concatenate(batches[epoch * per_epoch : (epoch + 1) * per_epoch])
        assert sorted(seen) == list(samples)
    if per_epoch <= steps // 2 and held > 3:
        first, second = (np.concatenate(batches[k : k + per_epoch]) for k in (0, per_epoch))
        assert not np.array_equal(first, second), "each epoch has a new order"


def test_a_devices_batches_do_not_depend_on_the_others() -> None:
    own = [np.arange(40), np.arange(40, 43), np.arange(43, 90)]
    together = draw_batches(own, [4, 2, 3], 16, [np.random.default_rng(k) for k in range(3)])
    for k in range(3):
        alone = draw_batches([own[k]], [int(together.steps[k])], 16, [np.random.default_rng(k)])
        assert all(np.array_equal(a, b) for a, b in zip(taken(alone), taken(together, k), strict=True))
        assert alone.seeds[0] == together.seeds[k]


def test_a_device_without_samples_does_no_step() -> None:
    plan = draw_batches([np.arange(0), np.arange(5)], [3, 3], 4, [np.random.default_rng(k) for k in (0, 1)])
    assert plan.steps.tolist() == [0, 3]
    assert not plan.weights[0].any()
    everyone = draw(np.arange(0), 3, 4)
    assert everyone.steps.tolist() == [0]
    assert steps_per_epoch(0, 4) == 0


@pytest.mark.parametrize(
    ("held", "sizes"), [(9, [4, 4, 4, 4]), (6, [4, 2, 4, 2]), (5, [4] * 4), (2, [2] * 4)]
)
def test_batch_norm_gets_no_batch_of_one(held: int, sizes: list[int]) -> None:
    plan = draw(np.arange(held), 4, 4, smallest=2)
    assert [len(own) for own in taken(plan)] == sizes
    per_epoch = steps_per_epoch(held, 4, smallest=2)
    for begin in range(0, 4, per_epoch):
        epoch = np.concatenate(taken(plan)[begin : begin + per_epoch])
        assert len(set(epoch)) == len(epoch)


def test_a_single_sample_is_taken_twice_for_batch_norm() -> None:
    plan = draw(np.array([17]), 3, 4, smallest=2)
    assert [own.tolist() for own in taken(plan)] == [[17, 17]] * 3
    assert steps_per_epoch(1, 4, smallest=2) == 1


@pytest.mark.parametrize(
    ("held", "batch", "smallest", "sizes"),
    [
        (0, 4, 1, []),
        (15, 128, 1, [15, 15, 15, 15, 15]),
        (6, 4, 1, [4, 2, 4, 2, 4]),
        # batch norm needs two samples: a last batch of one sample is left out, and a single sample is used twice
        (5, 4, 2, [4, 4, 4, 4, 4]),
        (1, 4, 2, [2, 2, 2, 2, 2]),
    ],
)
def test_processed_samples_match_batches(held: int, batch: int, smallest: int, sizes: list[int]) -> None:
    plan = draw(np.arange(held), 5, batch, smallest=smallest)
    for steps in range(len(sizes) + 1):  # early stopping may end training after any step
        assert plan.processed(np.array([steps])).tolist() == [sum(sizes[:steps])]
    assert plan.steps.tolist() == [len(sizes)]


def test_the_memory_that_batches_ask_for_is_what_their_arrays_take(monkeypatch: pytest.MonkeyPatch) -> None:
    """The estimate counts rows, their mask, and weights in both precisions; other arrays are negligible."""
    asked: list[Need] = []
    monkeypatch.setattr(batches, "require", asked.extend)
    plan = draw(np.arange(300), 50, 64)
    (need,) = asked
    kept, there, double = plan.rows.nbytes + plan.weights.nbytes, plan.rows.size, 8 * plan.rows.size
    assert need.size == kept + there + double
