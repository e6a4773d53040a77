"""What needs rounds one after the other is refused where they overlap, with place and remedy."""

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
LEARNING = {"dataset": "digits", "model": "logistic", "partition": "iid"}


def scenario(learning: dict[str, Any] | None = None, **keys: Any) -> Any:
    made = load_scenario(
        {**BASE, **({"learning": LEARNING | learning, "workload": None} if learning else {})}
    )
    return made.with_({key.replace("__", "."): value for key, value in keys.items()})


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        (
            {"radio__sharing": "static", "radio__scheduler": "equal_share"},
            "radio.sharing: .*set sharing: dynamic",
        ),
        ({"radio__downlink": "broadcast"}, "radio.downlink: .*set downlink: unicast"),
        ({"rounds__deadline_s": 3.0}, "rounds.deadline_s: is about rounds that follow one another"),
        ({"rounds__every_s": 3.0}, "rounds.every_s: "),
        ({"rounds__pause_s": 3.0}, "rounds.pause_s: "),
        (
            {"rounds__over_selection": 1.5, "rounds__selector": {"name": "uniform", "count": 2}},
            "rounds.over_selection: ",
        ),
        ({"rounds__server.buffer": 9}, "rounds.server.buffer: 9 exceeds the number of devices, 8"),
        ({"rounds__server.concurrency": 9}, "rounds.server.concurrency: 9 exceeds"),
        (
            {"rounds__server.concurrency": 5, "rounds__selector": {"name": "uniform", "count": 2}},
            "rounds.server.concurrency: rounds.selector.count says",
        ),
        ({"rounds__min_updates": 5}, "rounds.min_updates: 5 exceeds rounds.server.buffer 4"),
    ],
)
def test_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(EdgeflError, match=message):
        scenario(**keys)


@pytest.mark.parametrize("algorithm", ["scaffold", "feddyn", "feddc", "fednova", "hypcluster"])
def test_algorithms_that_need_one_round_are_refused(algorithm: str) -> None:
    with refused_at("learning.algorithm", algorithm, "fedavg, fedprox"):
        scenario(learning={"algorithm": algorithm})


def test_tiers_need_a_mean_and_all_devices() -> None:
    tiers = {"rounds__server": {"name": "tiers", "count": 2}}
    with refused_at("learning.algorithm", "fedadam"):
        scenario(learning={"algorithm": "fedadam"}, **tiers)
    with refused_at("rounds.selector", "tiers"):
        scenario(**tiers, rounds__selector={"name": "uniform", "count": 2})
    assert scenario(learning={"algorithm": "moon"}, **tiers).rounds.server.count == 2


def test_a_learner_from_outside_is_refused() -> None:
    with refused_at("rounds.server", "synchronous"):
        simulate(scenario(), learner=lambda told: None)
