"""Test that a short version of every shipped scenario runs, and that ledger and rounds record the same energy."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import edgefl
from tests.tools.invariants import check_run
from tests.tools.run_tables import parts_of

FOLDER = Path(__file__).parents[2] / "scenarios"
FOLDERS = (".", "benchmarks", "scale")
SCENARIOS = [path for folder in FOLDERS for path in sorted((FOLDER / folder).glob("*.yaml"))]
# overrides that keep a scenario short, with the small data set (or its own data set if that is quick to generate)
PLAIN = ["learning.partition=dirichlet", "learning.model=logistic", "devices.count=20"]
MIXED = [
    "devices.count=40",
    "learning.partition.samples=30",
    "learning.model=logistic",
    "learning.local.epochs=2",
]
SMALL = {
    "shakespeare": ["learning.partition=dirichlet", "learning.model=logistic", "learning.local.lr=0.01"],
    "flash_shakespeare": [*PLAIN, "learning.local.lr=0.01"],
    "flash_emnist": PLAIN,
    "flash_synthetic": ["learning.dataset=synthetic", "learning.model=logistic", "learning.local.epochs=2"],
    "flash_cifar10": MIXED,
    "flash_cifar100": MIXED,
    "flash_fashion_mnist": MIXED,
    "fedprox_synthetic": ["learning.dataset=synthetic", "learning.local.epochs=2"],
    "niid_fashion_mnist": ["learning.model=logistic", "learning.local.epochs=1"],
    "city_day": ["record.devices=all", "duration_s=1200"],
    "million": [
        "learning.dataset={name: synthetic, groups: 300, test_groups: 10}",
        "devices.count=300",
        "rounds.selector.count=20",
    ],
    "handover_hexagonal": ["duration_s=20"],
    "sync_or_async": ["sessions.length_s=5"],
    "long_day": ["devices.count=30", "rounds.selector.count=5"],
    "drift_by_cell": ["learning.partition.samples=20"],
    "drift_and_churn": ["learning.partition.samples=15"],
    "journal_fashion_mnist_as_run": ["record.devices=all"],
    "journal_mnist_as_run": ["record.devices=all"],
}
BATTERY_TOLERANCE = 1e-9  # relative to the battery's capacity


def shortened(path: Path) -> edgefl.Scenario:
    """Return a scenario with at most two sessions of four rounds, on the small data set."""
    scenario = edgefl.load_scenario(path)
    overrides = []
    if scenario.sessions.count:
        overrides.append(f"sessions.count={min(2, scenario.sessions.count)}")
    if "length_s" in type(scenario.sessions).model_fields:
        overrides.append(f"sessions.length_s={scenario.sessions.length_s / 4}")
        if not scenario.sessions.count and scenario.duration_s is not None:
            overrides.append(f"duration_s={scenario.duration_s / 4}")
    elif scenario.sessions.longest is None:
        assert scenario.duration_s is not None  # otherwise the run would never end
        overrides.append(f"duration_s={min(9000, scenario.duration_s / 4)}")
    elif "rounds" in type(scenario.sessions).model_fields:
        overrides.append("sessions.rounds=2")
    else:
        overrides += ["sessions.min_rounds=1", "sessions.max_rounds=4"]
    if scenario.learning is not None:
        overrides.append("learning.dataset=digits")
    return edgefl.load_scenario(path, [*overrides, *SMALL.get(path.stem, [])])


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_scenario(path: Path, tmp_path: Path) -> None:
    out = edgefl.simulate(shortened(path), out=tmp_path / "run", device="cpu")
    assert check_run(out) == []
    ledger = pd.concat([pd.read_csv(part / "ledger.csv") for part in parts_of(out).values()])
    # energy balance of batteries, up to the rounding of their level; devices on mains have no battery
    devices_of = edgefl.load_scenario(out / "scenario.yaml").devices
    classes = zip(devices_of.classes or [None], devices_of.kinds(), strict=True)
    for name, kind in classes:
        mine = ledger if name is None else ledger[ledger["class"] == name]
        assert len(mine)
        assert mine.left_j.notna().all() == (kind.battery_j is not None)
        if kind.battery_j is not None:
            given_j = kind.battery_j + mine.recharged_j - mine.left_j
            filled_j = (kind.battery_j + mine.recharged_j).max()
            assert np.allclose(given_j, mine.total_j, rtol=0, atol=BATTERY_TOLERANCE * filled_j)
    for part in parts_of(out).values():
        assert len(pd.read_csv(part / "rounds.csv")) >= 1
        devices = pd.read_csv(part / "devices.csv")
        completed = devices[devices.outcome == "completed"]
        # each completed participation moved the federation's whole payload
        assert completed.downlink_bits.nunique() <= 1
        assert completed.uplink_bits.nunique() <= 1
