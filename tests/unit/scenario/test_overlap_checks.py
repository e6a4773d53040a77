"""Numbers of a server that can never be reached are refused, with place and remedy."""

from typing import Any

import pytest

from edgefl import EdgeflError, load_scenario, simulate
from tests.refusals import refused_at

BASE: dict[str, Any] = {
    "name": "overlap",
    "devices": {"count": 8},
    "radio": {"sharing": "dynamic", "scheduler": "round_robin"},
    "sessions": {"name": "schedule", "count": 1, "rounds": 2},
    "rounds": {"server": {"name": "fedbuff", "buffer": 4}},
    "workload": {"payload_bits": 1000, "flops_per_sample": 1000},
}


def scenario(**keys: Any) -> Any:
    return load_scenario(BASE).with_({key.replace("__", "."): value for key, value in keys.items()})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"rounds__server.buffer": 9}, "rounds.server.buffer: 9 exceeds the number of devices, 8"),
        ({"rounds__server.concurrency": 9}, "rounds.server.concurrency: 9 exceeds"),
        (
            {"rounds__server.concurrency": 5, "rounds__selector": {"name": "uniform", "count": 2}},
            "rounds.server.concurrency: rounds.selector.count already says",
        ),
        ({"rounds__min_updates": 5}, "rounds.min_updates: 5 exceeds rounds.server.buffer 4"),
    ],
)
def test_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(EdgeflError, match=message):
        scenario(**keys)


def test_a_learner_from_outside_is_refused() -> None:
    with refused_at("rounds.server", "synchronous"):
        simulate(scenario(), learner=lambda told: None)
