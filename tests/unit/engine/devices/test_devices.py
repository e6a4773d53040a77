"""Test that a run's devices are created on first use, as most of a million devices never take part."""

import tracemalloc

import numpy as np
import simpy

from edgefl.engine.federation.device import Device, Devices
from edgefl.engine.federation.simulation import Simulation
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing.cell import Rows

MANY = 20_000
# Number of 8-byte values per device: place and direction 6, Doppler 1, walls and cars 12, network, power and ledger
# 25. Temporary copies take as many bytes again.
MOST_BYTES = 8 * 2 * 60


def test_devices_are_made_once_and_only_when_asked() -> None:
    made: list[int] = []
    simulation = _composed(50)
    inside = simulation.devices[3]

    def make(id_: int, draws: object) -> Device:
        made.append(id_)
        return inside

    devices = Devices(simulation.fleet, make)
    assert len(devices) == 50
    assert made == []
    assert devices[7] is devices[7]
    assert made == [7]
    assert len(devices[10:12]) == 2
    assert made == [7, 10, 11]
    assert len(list(devices)) == 50


def test_a_device_draws_what_its_class_says() -> None:
    simulation = _composed(20)
    assert [device.draws for device in simulation.devices] == simulation.fleet.draws()


def test_a_world_takes_less_than_a_kilobyte_for_each_device() -> None:
    _composed(10)  # a first use imports modules
    tracemalloc.start()
    try:
        simulation = _composed(MANY)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak / MANY <= MOST_BYTES
    assert np.isfinite(simulation.network.positions_m()).all()


def _composed(count: int) -> Simulation:
    workload = {"payload_bits": 1000, "flops_per_sample": 10, "steps": 1, "batch": 1}
    scenario = Scenario.model_validate(
        {
            "name": "many",
            "devices": {"count": count},
            "workload": workload,
            "sessions": {"name": "schedule", "count": 1, "rounds": 1},
            "radio": {"preset": "nr"},
        }
    )
    world = World(scenario, Streams(1))
    return compose(world, world.radio(simpy.Environment()), Rows(), {})[0]
