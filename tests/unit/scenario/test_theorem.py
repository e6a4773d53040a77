"""Measuring the terms of a theorem is refused where it does not hold."""

import pytest

from edgefl import load_scenario
from edgefl.errors import EdgeflError

PLAIN = {
    "name": "bound",
    "devices": {"count": 6},
    "sessions": {"name": "schedule", "count": 2, "rounds": 4},
    "learning": {
        "dataset": "digits",
        "partition": "iid",
        "model": "logistic",
        "momentum": 0,
        "theory": {"every": 1},
    },
}


def test_plain_sgd_by_fedavg_is_covered_whatever_opens_a_session() -> None:
    for start in ("previous", "average", "similarity"):
        load_scenario(PLAIN, [f"learning.warm_start={start}"])


@pytest.mark.parametrize(
    ("keys", "key", "remedy"),
    [
        (["learning.momentum=0.9"], "momentum", "momentum 0.9: set 0"),
        (["learning.optimiser=adam"], "optimiser", "adam is not sgd: set sgd"),
        (["learning.algorithm=fedprox"], "algorithm", "fedprox is not fedavg: set fedavg"),
        (["learning.warm_start=continuous"], "warm_start", "continuous adds to the local loss"),
        (["learning.weight_decay=0.1"], "weight_decay", "leave it out"),
        (["learning.clip_norm=1"], "clip_norm", "leave it out"),
        (["learning.augmentation={}"], "augmentation", "leave it out"),
        (["learning.privacy={clip: 1}"], "privacy", "leave it out"),
        (["learning.uplink_codec=top_k"], "uplink_codec", "leave it out"),
        (["learning.downlink_codec=top_k"], "downlink_codec", "leave it out"),
    ],
)
def test_beyond_the_theorem_measuring_is_refused(keys: list[str], key: str, remedy: str) -> None:
    with pytest.raises(EdgeflError) as error:
        load_scenario(PLAIN, keys)
    assert f"learning.{key}: " in str(error.value)
    assert remedy in str(error.value)
    assert "or leave learning.theory out" in str(error.value)
    load_scenario(PLAIN, [*keys, "learning.theory=null"])
