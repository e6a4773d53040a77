"""Compare the coverage of a UMi cell with `preset: nr` with an independent Monte Carlo of its link budget."""

import math
from typing import Any

import numpy as np
import pytest
import simpy

from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from tests.theory.nr_cell import DEVICE_DBM, drawn

DROPS, DEVICES, PLACES, SIGMAS = 12, 1000, 400_000, 4


def simulated(seed: int, **devices: Any) -> float:
    """Return the share of a drop's devices that have a link."""
    scenario = {
        "name": "coverage",
        "seed": seed,
        "devices": {"count": DEVICES, **devices},
        "sessions": {"name": "schedule", "count": 1, "rounds": 1},
        "workload": {"payload_bits": 1, "flops_per_sample": 1},
    }
    world = World(Scenario.model_validate(scenario), Streams(seed))
    coverage = world.radio(simpy.Environment()).coverage
    assert coverage is not None
    return float(coverage.among(0, np.arange(DEVICES), world.movement.positions_m(0.0)).mean())


@pytest.mark.parametrize(
    ("devices", "coated_share", "device_dbm"),
    [
        ({}, 0.0, DEVICE_DBM),
        ({"coated_share": 0.5}, 0.5, DEVICE_DBM),
        ({"coated_share": 1.0}, 1.0, DEVICE_DBM),
        ({"transmit_power_dbm": 26.0}, 0.0, 26.0),
    ],
    ids=["nr", "half coated", "all coated", "power class 2"],
)
def test_as_many_have_a_link_as_by_hand(
    devices: dict[str, Any], coated_share: float, device_dbm: float
) -> None:
    """Devices of a drop share fields of line of sight and shadowing, so the error is estimated over drops."""
    by_hand = drawn(np.random.default_rng(7), PLACES, coated_share, device_dbm).covered
    drops = np.array([simulated(seed, **devices) for seed in range(1, DROPS + 1)])
    error = math.hypot(drops.std(ddof=1) / math.sqrt(DROPS), by_hand.std() / math.sqrt(PLACES))
    assert drops.mean() == pytest.approx(by_hand.mean(), abs=SIGMAS * error)
    assert SIGMAS * error < 0.03
