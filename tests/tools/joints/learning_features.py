"""Features of learning, for scenarios that train: models, codecs, and stored states."""

from random import Random
from typing import Any

from edgefl.config import registry
from edgefl.testing.cell import within
from tests.tools.fuzz_schema import put
from tests.tools.joints.features import Data, Feature

INITIAL = "initial.safetensors"  # file of a logistic regression model for the digits
CODECS: dict[str, dict[str, tuple[Any, ...]]] = {
    "top_k": {"share": (0.02, 0.3)},
    "ef21": {"share": (0.1, 0.3)},
    "rand_k": {"share": (0.1, 0.3)},
    "qsgd": {"levels": (1, 7, 31)},
    "fedpaq": {"bits": (2, 8)},
    "powersgd": {"rank": (1, 4)},
}
EPOCHS = ("flash", "oracle", "feddrift")


def algorithm(data: Data, rng: Random) -> None:
    name = rng.choice(registry.names("algorithms"))
    put(data, ("learning", "algorithm"), name)
    if name in EPOCHS:
        put(data, ("learning", "local", "epochs"), 2)


def codecs(data: Data, rng: Random) -> None:
    for way in rng.choice((("uplink_codec",), ("downlink_codec",), ("uplink_codec", "downlink_codec"))):
        name = rng.choice(registry.names("codecs"))
        own: Data = {key: rng.choice(values) for key, values in CODECS.get(name, {}).items()}
        if "error_feedback" in registry.get("codecs", name).model_fields:
            own["error_feedback"] = rng.random() < 0.5
        data["learning"][way] = {"name": name, **own}


def drift(data: Data, rng: Random) -> None:
    data["learning"]["drift"] = {
        "name": rng.choice(registry.names("drifts")),
        "pattern": rng.choice(("sudden", "incremental", "recurrent")),
        "clock": rng.choice(("rounds", "seconds")),
        "at": rng.choice((0.1, 2)),
        "every": rng.choice((0.2, 1)),
        "share": rng.choice((0.5, 1)),
    }


def privacy(data: Data, rng: Random) -> None:
    data["learning"]["privacy"] = {
        "clip_norm": rng.choice((0.1, 10)),
        "noise": rng.choice((0, 0.01, 1)),
        "where": rng.choice(("server", "device")),
    }


def warm_start(data: Data, rng: Random) -> None:
    similarity = {
        "name": "similarity",
        "probe_rounds": rng.choice((1, 2)),
        "probe_share": rng.choice((0.3, 1)),
        "retention": rng.choice(("last", "diverse")),
        "check": rng.random() < 0.5,
    }
    data["learning"]["warm_start"] = rng.choice(("average", "continuous", similarity, similarity))
    data["learning"]["after_pilot"] = rng.choice(("continue", "restart"))
    data["sessions"] = {"name": "schedule", "count": 3, "rounds": 2}


def model(data: Data, rng: Random) -> None:
    put(
        data,
        ("learning", "model"),
        rng.choice(({"name": "mlp2", "hidden": 8}, {"name": "mlp", "hidden": [8]})),
    )
    put(data, ("learning", "local", "batching"), rng.choice(("auto", "stacked", "sequential")))


def initial(data: Data, rng: Random) -> None:
    data["learning"] |= {"dataset": "digits", "model": "logistic", "initial": {"path": INITIAL}}


def own_data(data: Data, rng: Random) -> None:
    learning = data["learning"]
    if rng.random() < 0.3:
        learning |= {"dataset": "diabetes", "partition": "iid"}
    else:
        learning |= {"dataset": {"name": "synthetic", "groups": 30}, "partition": "natural"}
        learning.setdefault("evaluation", {})["tested_on"] = rng.choice(("labels", "devices"))


def partition(data: Data, rng: Random) -> None:
    put(data, ("learning", "partition"), rng.choice(registry.names("partitions")))


def optimiser(data: Data, rng: Random) -> None:
    name, state = rng.choice(registry.names("optimisers")), rng.choice(("fresh", "kept"))
    data["learning"] = within(
        data["learning"],
        {
            "local": {
                "optimiser": {"name": name, "state": state},
                "lr_schedule": rng.choice(registry.names("lr_schedules")),
                "lr_floor": rng.choice((0, 0.1)),
                "weight_decay": rng.choice((0, 0.01)),
                "clip_norm": rng.choice((None, 1)),
            }
        },
    )


def work(data: Data, rng: Random) -> None:
    choices: tuple[Data, ...] = (
        {"local": {"steps": 3, "partial_work": 0.5}},
        {"local": {"epochs": 2, "early_stopping": 0.5}},
        {"local": {"one_pass": True, "steps": 50}},
        {"local": {"steps": 2, "augmentation": True}},
    )
    data["learning"] = within(data["learning"], rng.choice(choices))


def booked(data: Data, rng: Random) -> None:
    data["learning"] = within(
        data["learning"],
        {
            "cost": {
                "booked": rng.choice(("nominal", "processed", "all")),
                "payload": rng.choice(("model", "exchanged")),
                "bits_per_parameter": rng.choice((1, 16, 32)),
                "flops_per_sample": rng.choice((0, 1e6, "counted")),
            }
        },
    )


def told(data: Data, rng: Random) -> None:
    choices: tuple[Data, ...] = (
        {"evaluation": {"tested_on": "devices", "scores_every": 2, "every": 1}},
        {"evaluation": {"metrics": ["top5", "macro_f1", "auc", "perplexity"]}},
        {"theory": 2, "local": {"momentum": 0}},
        {"evaluation": {"validation": 0.1, "every": 2}},
    )
    data["learning"] = within(data["learning"], rng.choice(choices))


LEARNING: dict[str, Feature] = {
    feature.__name__: feature
    for feature in (
        *(algorithm, codecs, drift, privacy, warm_start, model, initial, own_data, partition, optimiser),
        *(work, booked, told),
    )
}
