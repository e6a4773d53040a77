"""Test the energies of many tails computed together, and of the tails of work under way, by hand."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import simpy

from edgefl.engine.devices.power import Power
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


def test_work_under_way_would_have_the_tails_of_its_own_transfers() -> None:
    """All devices began to work at 10 s; their tails are 1 s at 2 W and then 2 s at 1 W (4 J).

    Device 0 uploads after a tail of 1.5 s (2.5 J), so it would have a full tail, too. Device 1 computes in the tail
    of its download. Device 2 waits for its download in the tail of its earlier upload. Device 3 has never sent, and
    the tail of device 4 is not part of any work.
    """
    draws = cast(Any, [SimpleNamespace(tail=((1.0, 2.0), (2.0, 1.0)))] * 5)
    env = simpy.Environment()
    power = Power(env, 5, cast(Any, None), draws=draws)

    def transfer(device: int, start_s: float, end_s: float | None) -> None:
        env.run(until=start_s)
        power.radio_on(device, 1.0, 1.0, cast(Any, None))
        if end_s is not None:
            env.run(until=end_s)
            power.radio_off(device, end_s, 0.0)

    transfer(2, 9.0, 9.5)
    transfer(1, 10.5, 10.6)
    transfer(0, 10.8, 11.0)
    transfer(4, 11.1, 11.2)
    transfer(0, 12.5, None)
    busy = dict.fromkeys(range(4), 10.0)
    of_each = [power.tails_of_work_j({one: since_s}) for one, since_s in busy.items()]
    assert of_each == pytest.approx([2.5 + 4.0, 4.0, 0.0, 0.0])
    assert power.tails_of_work_j(busy) == pytest.approx(10.5)
    assert power.tails_of_work_j({}) == 0.0
