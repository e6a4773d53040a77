"""Test that tails of many devices computed together equal tails computed one by one."""

import math

import numpy as np
import pytest

from edgefl.engine.devices.tails import Tails

TAILS = [(), ((2.0, 0.5),), ((1.0, 3.0), (4.0, 0.25))]


@pytest.mark.parametrize("lasts_s", [0.0, 0.5, 1.5, 3.0, math.inf])
def test_energies_together_are_those_one_by_one(lasts_s: float) -> None:
    tails, devices = Tails(TAILS), np.array([2, 0, 1, 2])
    one_by_one = [tails.energy_j(device, lasts_s) for device in devices.tolist()]
    assert tails.energies_j(devices, lasts_s).tolist() == one_by_one
    assert tails.energies_j(devices, np.full(4, lasts_s)).tolist() == one_by_one


def test_an_energy_is_power_times_time_step_by_step() -> None:
    # the first tail has 2 s at 0.5 W; the second has 1 s at 3 W, then 0.5 s at 0.25 W
    assert Tails(TAILS).energies_j(np.array([1, 2]), np.array([9.0, 1.5])).tolist() == [1.0, 3.125]
