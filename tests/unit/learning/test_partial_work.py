"""Test which devices are stragglers, how many epochs they train, and that nothing else changes."""

from typing import Any

import numpy as np

from edgefl.learning.partial_work import lengths
from tests.refusals import refused_at
from tests.unit.learning.digits_cell import data_of, learner, opened, round_of, settings_of

DEVICES, EPOCHS = 10, 5


def iterations(share: float) -> np.ndarray:
    """Return [rounds, devices] local steps; a device's 150 samples are 3 batches per epoch."""
    local = {"batch": 50, "epochs": EPOCHS, "partial_work": share}
    how: dict[str, Any] = {"partition": "iid", "local": local}
    one = learner(data=data_of(settings_of(**how), devices=DEVICES), **how)
    stage = opened(one, ids=range(DEVICES))
    return np.array([round_of(stage, range(DEVICES), number).iterations for number in (1, 2)])


def test_nine_of_ten_do_one_to_four_of_five_epochs() -> None:
    steps = iterations(0.9)
    assert (steps % 3 == 0).all()
    assert ((steps == 3 * EPOCHS).sum(1) == 1).all()
    assert steps.min() >= 3
    assert not np.array_equal(*steps)
    assert (iterations(0.0) == 3 * EPOCHS).all()


def test_all_lengths_and_all_devices_are_as_likely() -> None:
    """All 10 devices and all 19 lengths of stragglers are equally likely (chi-square, 5 standard deviations)."""
    rounds, asked = 2000, 20
    rng = np.random.default_rng
    drawn = np.array(
        [lengths(0.5, asked, rng([1, r]), [rng([r, k]) for k in range(DEVICES)]) for r in range(rounds)]
    )
    assert ((drawn < asked).sum(1) == 5).all()
    for counts in (np.bincount(drawn[drawn < asked], minlength=asked)[1:], (drawn < asked).sum(0)):
        expected, free = counts.sum() / len(counts), len(counts) - 1
        chi_square = ((counts - expected) ** 2 / expected).sum()
        assert chi_square < free + 5 * (2 * free) ** 0.5


def test_of_one_epoch_nobody_does_fewer() -> None:
    with refused_at("", "partial_work"):
        settings_of(local={"epochs": 1, "partial_work": 0.5})
