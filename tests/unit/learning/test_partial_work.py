"""Test which devices are stragglers, how many epochs they train, and that nothing else changes."""

import math
from typing import Any

import numpy as np
import pytest

from edgefl.learning.federation.round_work import lengths
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
        [
            lengths(0.5, [asked] * DEVICES, rng([1, r]), [rng([r, k]) for k in range(DEVICES)])
            for r in range(rounds)
        ]
    )
    assert ((drawn < asked).sum(1) == 5).all()
    for counts in (np.bincount(drawn[drawn < asked], minlength=asked)[1:], (drawn < asked).sum(0)):
        expected, free = counts.sum() / len(counts), len(counts) - 1
        chi_square = ((counts - expected) ** 2 / expected).sum()
        assert chi_square < free + 5 * (2 * free) ** 0.5


@pytest.mark.parametrize(("share", "devices"), [(0.3, 1), (0.6, 1), (0.25, 10), (0.29, 100)])
def test_the_share_is_exact_on_average_for_any_number_of_devices(share: float, devices: int) -> None:
    """Asynchronous servers dispatch devices one by one; the share is within 4.5 standard errors, or exact."""
    rounds, rng, wanted = 2000, np.random.default_rng, share * devices
    each = [rng(k) for k in range(devices)]
    asked = [5] * devices
    drawn = [lengths(share, asked, rng([2, r]), each) for r in range(rounds)]
    few = np.array([sum(one < 5 for one in some) for some in drawn])
    assert set(few) <= {math.floor(wanted + 1e-6), math.ceil(wanted - 1e-6)}
    part = wanted % 1 if abs(wanted - round(wanted)) > 1e-6 else 0.0
    assert abs(few.mean() - wanted) <= 4.5 * math.sqrt(part * (1 - part) / rounds) + 1e-6


def test_stragglers_do_a_part_of_their_own_pass() -> None:
    """With `one_pass`, a pass of 3 batches ends before 20 steps, and a straggler does one or two of the three."""
    local = {"batch": 50, "steps": 20, "one_pass": True, "partial_work": 0.9}
    how: dict[str, Any] = {"partition": "iid", "local": local}
    one = learner(data=data_of(settings_of(**how), devices=DEVICES), **how)
    stage = opened(one, ids=range(DEVICES))
    steps = np.array([round_of(stage, range(DEVICES), number).iterations for number in range(1, 5)])
    assert ((steps == 3).sum(1) == 1).all()
    assert set(steps.ravel().tolist()) == {1, 2, 3}


def test_a_single_batch_cannot_be_shortened() -> None:
    rng = np.random.default_rng
    assert lengths(1.0, [1, 0, 2], rng(0), [rng(k) for k in range(3)]) == [1, 0, 1]


def test_of_one_epoch_nobody_does_fewer() -> None:
    with refused_at("", "partial_work"):
        settings_of(local={"epochs": 1, "partial_work": 0.5})
