"""Worlds that differ from the smallest in the sections of their scenario."""

from typing import Any

from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World


def world_of(seed: int = 1, **sections: Any) -> World:
    schedule = {"name": "schedule", "count": 1, "rounds": 1}
    workload = {"payload_bits": 1, "flops_per_sample": 1}
    scenario = {"name": "world", "sessions": schedule, "workload": workload, **sections}
    return World(Scenario.model_validate(scenario), Streams(seed))
