"""Make test worlds by changing sections of the smallest scenario, and links that never fade."""

from typing import Any

import numpy as np

from edgefl.channel.fading import LinkFading
from edgefl.rng import Streams
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World


class Steady(LinkFading):
    """A link whose power is always 1."""

    def __init__(self) -> None:
        super().__init__(1, 1.0)

    def power(self, first_slot: int, count: int) -> np.ndarray:
        return np.ones(count)


def world_of(seed: int = 1, **sections: Any) -> World:
    schedule = {"name": "schedule", "count": 1, "rounds": 1}
    workload = {"payload_bits": 1, "flops_per_sample": 1}
    scenario = {"name": "world", "sessions": schedule, "workload": workload, **sections}
    return World(Scenario.model_validate(scenario), Streams(seed))
