"""Test that every pair of components of two kinds is accepted, or refused at a key, and that some scenarios run."""

from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

import pytest

from edgefl import EdgeflError, load_scenario, simulate
from edgefl.config import registry
from edgefl.scenario.scenario import Scenario
from edgefl.testing.cell import within
from tests.tables import sections
from tests.tools.invariants import check_run
from tests.tools.movements import AREAS, CHURN, DEVICES, MOBILITY, write_trace

PARTS = 10  # parts into which all pairs are divided; `make quick` tests some
RUNS = 4  # number of scenarios run in each part
TRIES = 3  # number of components tried for a scenario's slot
# parameters that have no default, or a default that is too expensive
OWN: dict[tuple[str, str], dict[str, Any]] = {
    **{("mobility", name): values for name, values in MOBILITY.items()},
    **{("churn", name): values for name, values in CHURN.items()},
    **{("selectors", name): {"count": 2} for name in registry.names("selectors")},
    ("selectors", "all"): {},
    ("selectors", "fedcs"): {"deadline_s": 1.0},
    ("selectors", "least_energy"): {"deadline_s": 1.0, "count": 2},
    ("selectors", "power_of_choice"): {"count": 2, "d": 4},
    ("servers", "fedbuff"): {"buffer": 2},
    ("servers", "semi_synchronous"): {"every_s": 0.1},
    ("servers", "tiers"): {"count": 2},
    ("sessions", "schedule"): {"count": 2, "rounds": 1},
    ("sessions", "interval"): {"count": 2, "length_s": 0.2},
    ("sessions", "daily"): {"count": 2, "at_hours": [6, 18], "day_s": 1.0},
    **{
        ("sessions", name): {"count": 1, "min_rounds": 1, "max_rounds": 2}
        for name in ("adaptive", "early_stopping", "membership")
    },
    ("backgrounds", "load"): {"uplink_load": 0.2, "file_bits": 3000},
    ("backgrounds", "trace"): {"path": str(Path("scenarios/traces/band_load.csv").resolve())},
    ("drifts", "label_swap"): {"at": 1},
    ("drifts", "noise"): {"at": 1},
    ("drifts", "rotation"): {"at": 1},
    ("models", "mlp"): {"hidden": [4]},
    ("models", "mlp2"): {"hidden": 4},
}
# data sets that come with edgefl, and models that train in milliseconds; other data sets and models are only larger
FEW = {"datasets": ("digits", "diabetes", "synthetic"), "models": ("logistic", "mlp", "mlp2")}
# slots of a scenario: key -> kind of its components
SLOTS = {
    "learning.algorithm": "algorithms",
    "rounds.selector": "selectors",
    "devices.mobility": "mobility",
    "learning.partition": "partitions",
    "learning.uplink_codec": "codecs",
    "radio.scheduler": "schedulers",
    "sessions": "sessions",
    "rounds.server": "servers",
    "devices.churn": "churn",
    "learning.task": "tasks",
    "learning.warm_start": "warm_starts",
    "learning.local.lr_schedule": "lr_schedules",
    "radio.path_loss": "path_loss",
    "learning.dataset": "datasets",
    "learning.model": "models",
    "learning.local.optimiser": "optimisers",
    "learning.drift": "drifts",
    "devices.power": "power_models",
    "radio.background": "backgrounds",
}
Chosen = dict[str, str]  # slot -> name; other slots have their defaults


def values(slot: str) -> list[str]:
    kind = SLOTS[slot]
    return list(FEW.get(kind, registry.names(kind)))


def made(chosen: Chosen) -> Any:
    """Return a scenario with these components, and the band sharing and settings that they require."""
    overlaps = chosen.get("rounds.server", "synchronous") != "synchronous"
    per_slot = chosen.get("radio.scheduler") in ("max_rate", "proportional_fair", "round_robin")
    dynamic = overlaps or per_slot or "radio.background" in chosen
    data = sections(f"""
        name=pair; cell.radius_m=60; areas={AREAS}; devices={{count: {DEVICES}, clock_hz: 2e7}}
        radio={{preset: journal, bandwidth_hz: 2e7, sharing: {"dynamic" if dynamic else "static"}}}
        radio.budget.power_over_share={"per_resource_block" if "radio.background" in chosen else "full"}
        sessions={{name: schedule, count: 1, rounds: 1}}; rounds.max_wait_s=3.0
        learning={{dataset: digits, model: logistic, partition: iid, local: {{batch: 16, epochs: 1}}}}
        learning.evaluation.validation=0.1
    """)
    for slot, name in chosen.items():
        value = {"name": name, **OWN.get((SLOTS[slot], name), {})}
        for key in reversed(slot.split(".")):
            value = {key: value}
        data = within(data, value)
    if chosen.get("sessions") == "interval":
        data["duration_s"] = 0.8
    return load_scenario(data)


def problem(chosen: Chosen) -> str | None:
    """Return the error of loading a scenario, or None if there is no error."""
    try:
        made(chosen)
    except EdgeflError as error:
        return str(error)
    return None


def placed(said: str) -> bool:
    """Return whether an error begins with a key of the scenario."""
    return said.removeprefix("scenario: ").partition(":")[0].partition(".")[0] in Scenario.model_fields


def ran(chosen: Chosen, folder: Path) -> bool:
    """Run a scenario and check its tables; return False if a key is refused, e.g. because a model does not fit."""
    scenario, said = made(chosen), None
    try:
        run = simulate(scenario, folder, device="cpu")
    except EdgeflError as error:
        said = str(error)
    if said is None:
        assert check_run(run) == [], chosen
    else:
        assert placed(said), f"the error of {chosen} names no key: {said}"
    return said is None


def drawn(pair: Any, left: set[Any], rng: Random) -> Chosen:
    """Return a scenario with a pair, and in each other slot the component that adds the most untested pairs."""
    chosen = dict(pair)
    for slot in rng.sample(list(SLOTS), len(SLOTS)):
        if slot in chosen:
            continue

        def gains(name: str, slot: str = slot) -> int:
            return sum(tuple(sorted(((slot, name), one))) in left for one in chosen.items())

        names = sorted(values(slot), key=lambda name: (-gains(name), rng.random()))
        for name in names[:TRIES]:
            if gains(name) and problem({**chosen, slot: name}) is None:
                chosen[slot] = name
                break
    return chosen


@pytest.mark.parametrize("part", range(PARTS))
def test_pairs(part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "trace.csv")
    rng = Random(part)
    singles = [(slot, name) for slot in SLOTS for name in values(slot)]
    left = {
        tuple(sorted(pair))
        for pair in combinations(singles, 2)
        if pair[0][0] != pair[1][0] and crc32(repr(sorted(pair)).encode()) % PARTS == part
    }
    for pair in sorted(left):
        if (said := problem(dict(pair))) is not None:
            assert placed(said), f"the error of {pair} names no key: {said}"
            left.discard(pair)
    for number in range(RUNS):
        pair = rng.choice(sorted(left))
        chosen = drawn(pair, left, rng)
        if not ran(chosen, tmp_path / str(number)):
            ran(dict(pair), tmp_path / f"{number}-alone")
        left -= {tuple(sorted(both)) for both in combinations(chosen.items(), 2)}


def test_every_kind_has_a_slot() -> None:
    assert {*SLOTS.values()} == {*registry.KINDS}
