"""Test the accuracy of random combinations of codecs (in both directions), algorithms, servers, partitions, models.

Error feedback may take tens of rounds to diverge, so three finite rounds prove nothing. Each device therefore
sends some 60 updates, and the run is compared with the same run without codecs.
"""

from pathlib import Path
from random import Random
from typing import Any

import pytest

import edgefl
from edgefl.config import registry
from tests.tables import sections

UPDATES, DEVICES = 60, 8  # number of updates that each device sends, one per model
SERVERS: list[tuple[dict[str, Any], int]] = [
    ({"name": "synchronous"}, UPDATES),
    ({"name": "synchronous"}, UPDATES),
    ({"name": "fedbuff", "buffer": 4}, 2 * UPDATES),
    ({"name": "fedasync"}, 4 * UPDATES),
    ({"name": "semi_synchronous", "every_s": 0.2}, UPDATES),
    ({"name": "tiers", "count": 2}, 2 * UPDATES),
]
OF_MODELS = ("fedavg", "fedprox", "moon", "apfl", "ditto")
OF_CHANGES = (*OF_MODELS, "fedacg", "fedadam", "fedyogi")
OF_ONE_ROUND = (*OF_CHANGES, "ca2fl", "scaffold", "fednova", "adaptive_fedavg")
# these algorithms sum past changes with little or no decay, so updates that arrive many rounds late cause oscillation
SWINGING = ("fedavgm", "feddyn", "feddc")
LATE = ("rand_k", "qsgd")
PARAMETERS: dict[str, dict[str, list[Any]]] = {
    "top_k": {"share": [0.1, 0.3]},
    "ef21": {"share": [0.1, 0.3]},
    "rand_k": {"share": [0.1, 0.3]},
    "qsgd": {"levels": [7, 31]},
    "fedpaq": {"bits": [4, 8]},
    "powersgd": {"rank": [2, 4]},
}
NUMBERS = (1, 2, 5, 10, 15, 18)  # these draws together contain every server and codec
SHARE = 2 / 3  # minimum accuracy relative to a run without codecs; guessing reaches an eighth of its accuracy


def drawn(number: int) -> dict[str, Any]:
    """Draw the training task, the world and the codecs."""
    rng = Random(f"codecs {number}")
    server, models = rng.choice(SERVERS)
    algorithms = {"synchronous": (*OF_ONE_ROUND, *SWINGING), "tiers": OF_MODELS}.get(
        server["name"], OF_CHANGES
    )
    algorithm = rng.choice(algorithms)
    names = [name for name in registry.names("codecs") if algorithm not in SWINGING or name not in LATE]
    learning = {
        "dataset": "digits",
        "algorithm": algorithm,
        "model": rng.choice(["logistic", {"name": "mlp2", "hidden": 32}]),
        "partition": rng.choice(["iid", {"name": "dirichlet", "alpha": 0.5}]),
        "local": {"batch": 32, "lr": 0.05},
        "cost": {"payload": "exchanged"},
        "evaluation": {"every": models},
    }
    ways = rng.choice([["uplink_codec"], ["downlink_codec"], ["uplink_codec", "downlink_codec"]])
    codecs = {}
    for way in ways:
        name = rng.choice(names)
        codecs[way] = {"name": name} | {
            key: rng.choice(values) for key, values in PARAMETERS.get(name, {}).items()
        }
        if "error_feedback" in registry.get("codecs", name).model_fields:
            codecs[way]["error_feedback"] = rng.choice([True, False])
    data = sections(f"""
        name=joint; seed={number}; devices={{count: {DEVICES}}}
        sessions={{name: schedule, count: 1, rounds: {models}}}
        radio={{preset: journal, bandwidth_hz: 2e7, sharing: dynamic, scheduler: round_robin}}
    """)
    return {**data, "rounds": {"server": server}, "learning": learning | codecs}


def ended(data: dict[str, Any], out: Path) -> tuple[float, float]:
    """Run a scenario; return its final accuracy and loss."""
    rounds = edgefl.Results(edgefl.simulate(edgefl.load_scenario(data), out, device="cpu")).rounds
    last = rounds.dropna(subset=["accuracy"]).iloc[-1]
    return float(last.accuracy), float(last.loss)


def test_every_server_and_codec_comes_up() -> None:
    draws = [drawn(number) for number in NUMBERS]
    assert {draw["rounds"]["server"]["name"] for draw in draws} == {*registry.names("servers")}
    codecs = [value["name"] for draw in draws for key, value in draw["learning"].items() if "codec" in key]
    assert {*codecs} == {*registry.names("codecs")}


@pytest.mark.parametrize("number", NUMBERS)
def test_codecs_learn_with_everything(number: int, tmp_path: Path) -> None:
    data = drawn(number)
    whole = {key: value for key, value in data["learning"].items() if not key.endswith("_codec")}
    accuracy, _ = ended(data, tmp_path / "coded")
    of_whole, _ = ended({**data, "learning": whole}, tmp_path / "whole")
    assert accuracy > SHARE * of_whole, data
