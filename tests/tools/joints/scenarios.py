"""Draw scenarios of a small base and some features; seed, number and a feature's name determine the feature."""

from dataclasses import dataclass, replace
from random import Random

import yaml

from tests.tools import fuzz_servers
from tests.tools.fuzz_schema import at, name_at
from tests.tools.joints.features import ASKING, DECIDING, WORLD, Data
from tests.tools.joints.learning_features import LEARNING
from tests.tools.movements import AREAS, DEVICES

FEATURES = WORLD | LEARNING
PER_SLOT = ("max_rate", "proportional_fair", "round_robin")
MOST = 6  # features per scenario
UNFITTED = 0.15  # share of scenarios whose contradictory settings are kept


@dataclass(frozen=True)
class Draw:
    """A scenario given by seed, number and features; leaving features out does not change the rest."""

    seed: int
    number: int
    trains: bool
    features: tuple[str, ...]

    @property
    def data(self) -> Data:
        """The content of a scenario file."""
        return made(self)

    @property
    def text(self) -> str:
        """The scenario's file."""
        return yaml.safe_dump(self.data, sort_keys=False)

    def without(self, feature: str) -> "Draw":
        """Return the same scenario without a feature."""
        return replace(self, features=tuple(one for one in self.features if one != feature))


def drawn(seed: int, number: int) -> Draw:
    """Draw whether a scenario trains, and its features."""
    rng = Random(f"joints {seed} {number}")
    trains = rng.random() < 0.6
    names = [*WORLD, *LEARNING] if trains else [*WORLD]
    chosen = set(rng.sample(names, rng.randint(2, MOST)))
    return Draw(seed, number, trains, tuple(name for name in names if name in chosen))


def made(draw: Draw) -> Data:
    """Make a scenario with its features."""
    rng = Random(f"joints {draw.seed} {draw.number} base")
    data: Data = {
        "name": "joint",
        "seed": rng.randint(0, 10**6),
        "cell": {"radius_m": 60},
        "areas": AREAS,
        "devices": {"count": rng.choice((4, 6, 8)), "clock_hz": rng.choice((1e7, 1e9))},
        "radio": {"preset": rng.choice(("nr", "journal")), "bandwidth_hz": rng.choice((5e5, 2e6, 2e7))},
        "sessions": {"name": "schedule", "count": 2, "rounds": 3},
        "rounds": {"max_wait_s": 3.0},
    }
    if draw.trains:
        data["learning"] = {
            "dataset": "digits",
            "model": "logistic",
            "local": {"batch": 16, "steps": 2, "lr": 0.05},
        }
    else:
        data["workload"] = {
            "payload_bits": rng.choice((1, 7_001, 100_000)),
            "flops_per_sample": rng.choice((0, 1e4)),
        }
    fits = rng.random() >= UNFITTED
    for name in draw.features:
        FEATURES[name](data, Random(f"joints {draw.seed} {draw.number} {name}"))
    if name_at(data, ("devices", "mobility")) == "trace":
        data["devices"]["count"] = DEVICES
    if fits:
        _fit(data, Random(f"joints {draw.seed} {draw.number} fit"))
    return data


def _fit(data: Data, rng: Random) -> None:
    """Resolve the conflicts between settings that most often cause a scenario to be refused."""
    _fit_devices(data["devices"])
    _fit_rounds(data)
    _fit_radio(data["radio"], several="layout" in data)
    if "federations" in data:
        data.pop("cloud", None)
        data["radio"].pop("background", None)
        data["devices"].pop("populations", None)
    held = data["radio"].get("sharing") == "static" and "federations" not in data
    if "record" in data and not held:
        data["record"].pop("energy_excess", None)
    fuzz_servers.fitted(data, rng)


def _fit_devices(devices: Data) -> None:
    if "classes" in devices or "populations" in devices:
        devices.pop("density_per_km2", None)
        devices["count"] = max(10, devices.get("count", 0))
    if name_at(devices, ("churn",)) == "client_pattern":
        devices.pop("density_per_km2", None)
        devices["count"] = max(6, devices.get("count", 0))
    if "density_per_km2" in devices:
        devices.pop("count", None)


def _fit_radio(radio: Data, *, several: bool) -> None:
    propagation, budget = (radio.setdefault(section, {}) for section in ("propagation", "budget"))
    if radio.get("path_loss") in ("inh", "free_space"):
        propagation["line_of_sight"] = "always"
        propagation.pop("shadowing_std_db", None)
    if several or propagation.get("line_of_sight") in ("probabilistic", "soft"):
        propagation["shadowing"] = "spatial"
    if not several:
        radio.pop("neighbour_load", None)
    if radio.get("scheduler") in PER_SLOT:
        radio["sharing"] = "dynamic"
    if radio.get("sharing") == "dynamic":
        radio.pop("fidelity", None)
        if budget.get("uplink_p0_dbm") is not None:
            budget["uplink_power_over_share"] = "per_resource_block"
    if radio.get("interference") == "slot":
        budget["power_over_share"] = "per_resource_block"
        radio.pop("fidelity", None)


def _fit_rounds(data: Data) -> None:
    rounds, radio = data["rounds"], data["radio"]
    selector, server = (name_at(data, ("rounds", key)) for key in ("selector", "server"))
    overlap = server not in (None, "synchronous")
    if selector in DECIDING:
        radio.pop("background", None)
        if overlap or "federations" in data:
            del rounds["selector"]
        else:
            radio |= {"sharing": "static", "scheduler": "equal_share"}
    elif selector in ASKING and "federations" in data:
        del rounds["selector"]
    if overlap and (server == "tiers" or "concurrency" in rounds["server"]):
        rounds.pop("selector", None)
    if "selector" not in rounds:
        rounds.pop("over_selection", None)
    most = [at(rounds, place) for place in (("selector", "count"), ("server", "buffer"))]
    if "min_updates" in rounds:
        rounds["min_updates"] = min(each for each in (rounds["min_updates"], *most) if each is not None)
        if "populations" in data["devices"]:
            rounds["min_updates"] = 1
