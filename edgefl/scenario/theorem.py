"""What the convergence theorem does not cover: refused where its terms are to be measured, with the remedy."""

from edgefl.config import registry
from edgefl.errors import EdgeflError
from edgefl.learning.settings import LearningSettings
from edgefl.learning.warm_starts import WarmStart

# keys of `learning` that have to be unset, and what they do to a local step or to what travels
CHANGES = {
    "weight_decay": "adds to each gradient",
    "clip_norm": "shortens gradients",
    "augmentation": "trains on other samples than those of the loss",
    "privacy": "clips and noises what devices send",
    "uplink_codec": "sends another change than the one that was trained",
    "downlink_codec": "lets devices begin with another model than the global one",
}


def check(learning: LearningSettings | None) -> None:
    """Refuse measuring the terms of a bound that does not hold for the run.

    Raises:
        EdgeflError: names the key and the remedy.
    """
    if learning is None or learning.theory is None:
        return
    named = {
        key: registry.name_of(kind, getattr(learning, key))
        for key, kind in (
            ("algorithm", "algorithms"),
            ("optimiser", "optimisers"),
            ("warm_start", "warm_starts"),
        )
    }
    beyond = {
        "algorithm": named["algorithm"] != "fedavg" and f"{named['algorithm']} is not fedavg: set fedavg",
        "optimiser": named["optimiser"] != "sgd" and f"{named['optimiser']} is not sgd: set sgd",
        "momentum": learning.momentum and f"steps have momentum {learning.momentum:g}: set 0",
        "warm_start": type(learning.warm_start).anchor is not WarmStart.anchor
        and f"{named['warm_start']} adds to the local loss: set previous, average or similarity",
        **{key: getattr(learning, key) and f"it {what}: leave it out" for key, what in CHANGES.items()},
    }
    for key, problem in beyond.items():
        if problem:
            raise EdgeflError(
                f"learning.theory measures the terms of a theorem about plain SGD and FedAvg, and {problem}, or leave"
                " learning.theory out",
                ("learning", key),
            )
