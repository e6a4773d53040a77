"""Every mobility model in one cell and in seven, every kind of shadowing, band and churn: the books agree.

Tiny runs without training. What they compute is derived elsewhere, and test_joints.py lets features meet at random;
here `tests.tools.invariants` says whether the tables hold together.
"""

import csv
import json
import math
from pathlib import Path
from typing import Any

import pytest
import simpy

import edgefl
from edgefl.config import registry
from edgefl.engine.records import Position
from edgefl.rng import Streams
from edgefl.run.composition import compose
from edgefl.run_directory.settings import RecordSettings
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World
from edgefl.testing.cell import Rows
from tests.tools.invariants import check_run
from tests.tools.movements import AREAS, CHURN, DEVICES, MOBILITY, write_trace

RADIUS_M, ISD_M = 60.0, 50.0
SEEDS, MAP_S, MAP_END_S = 2, 0.07, 12.0  # times that are no ticks
WORLDS = {
    "one cell, round": {},
    "one cell, spatial": {"propagation": {"shadowing": "spatial", "line_of_sight": "probabilistic"}},
    "seven cells": {
        "propagation": {"shadowing": "spatial", "line_of_sight": "probabilistic"},
        "neighbour_load": 0.2,
    },
}
BANDS = [("one cell, round", "static"), ("one cell, spatial", "dynamic"), ("seven cells", "static")]


def scenario(mobility: str, world: str, sharing: str, churn: str = "always_on", **devices: Any) -> Scenario:
    seven = world == "seven cells"
    return Scenario.model_validate(
        {
            "name": "matrix",
            "seed": 4,
            "cell": {"radius_m": RADIUS_M},
            "areas": AREAS,
            "layout": {"rings": 1, "isd_m": ISD_M} if seven else {},
            "handover": {
                "hysteresis_db": 1,
                "time_to_trigger_s": 0.05,
                "measurement_interval_s": 0.1,
                "policy": "finish" if sharing == "dynamic" else "drop",
            },
            "devices": {
                "count": DEVICES,
                "mobility": {"name": mobility, **MOBILITY[mobility]},
                "churn": {"name": churn, **CHURN[churn]},
                "clock_hz": 1e7,
                "idle_power_w": 0.01,
                **devices,
            },
            "radio": {"preset": "journal", "bandwidth_hz": 3e5, "sharing": sharing, **WORLDS[world]},
            "sessions": {
                "name": "membership",
                "count": 2,
                "changed_share": 0.4,
                "min_rounds": 4,
                "max_rounds": 8,
            },
            "rounds": {"max_wait_s": 3.0, "deadline_s": 2.0},
            "workload": {"payload_bits": 300_000, "flops_per_sample": 1e4},
        }
    )


def run(tmp_path: Path, made: Scenario) -> dict[str, int]:
    """Run a scenario; its tables hold. Returns how often each event and outcome occurs."""
    directory = edgefl.simulate(made, out=tmp_path / "run")
    assert check_run(directory) == []
    about = json.loads((directory / "run.json").read_text())
    assert about["status"] == "completed"
    found: dict[str, int] = {}
    for table, column in (("events", "event"), ("devices", "outcome")):
        with (directory / f"{table}.csv").open() as file:
            for row in csv.DictReader(file):
                found[row[column]] = found.get(row[column], 0) + 1
    assert found["completed"] > 0
    return found


def test_the_matrix_has_every_component() -> None:
    assert sorted(MOBILITY) == sorted(registry.names("mobility"))
    assert sorted(CHURN) == sorted(registry.names("churn"))


@pytest.mark.parametrize(("world", "sharing"), BANDS)
@pytest.mark.parametrize("mobility", MOBILITY)
def test_movement(
    mobility: str, world: str, sharing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "trace.csv")
    found = run(tmp_path, scenario(mobility, world, sharing))
    if mobility != "static":
        assert found.get("departure", 0) + found.get("handover", 0) > 0, "nobody ever leaves: raise the speed"


@pytest.mark.parametrize("world", ["one cell, round", "seven cells"])
@pytest.mark.parametrize("churn", CHURN)
def test_churn(churn: str, world: str, tmp_path: Path) -> None:
    found = run(tmp_path, scenario("random_waypoint", world, "static", churn))
    assert ("switched_off" in found) == (churn in ("poisson", "duty_cycle", "availability_trace"))


@pytest.mark.parametrize("world", ["one cell, spatial", "seven cells"])
@pytest.mark.parametrize("mobility", MOBILITY)
def test_a_map_is_recorded_wherever_devices_go(
    mobility: str, world: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two ticks devices cross the border with their cell: each link has a gain and a SINR, at any time."""
    monkeypatch.chdir(tmp_path)
    write_trace(tmp_path / "trace.csv")
    for seed in range(1, SEEDS + 1):
        made = scenario(mobility, world, "static").model_copy(
            update={"seed": seed, "record": RecordSettings(positions_s=MAP_S)}
        )
        rows, here = Rows(), World(made, Streams(seed))
        simulation, _ = compose(here, here.radio(simpy.Environment()), rows, {})
        simulation.env.run(until=MAP_END_S)
        served = [row for row in rows.of[Position] if row.cell is not None]
        assert len(served) > 0
        assert all(row.gain_db is not None and math.isfinite(row.gain_db) for row in served)
        assert all(row.sinr_db is not None and math.isfinite(row.sinr_db) for row in served)
