"""Test that a run's tables are consistent for every mobility model, churn model, kind of band, and set of cells.

The runs are tiny and train nothing. Other tests compare values with derivations, and test_joints.py combines features
at random; here `tests.tools.invariants` checks that the tables are consistent.
"""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import edgefl
from edgefl.config import registry
from edgefl.run_directory.settings import RecordSettings
from edgefl.scenario.scenario import Scenario
from edgefl.testing.cell import within
from tests.tables import sections
from tests.tools.invariants import check_run
from tests.tools.movements import AREAS, CHURN, DEVICES, MOBILITY, write_trace

RADIUS_M, ISD_M = 60.0, 50.0
MAP_S = 0.07  # interval between recorded positions, not a multiple of the tick
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
    layout = f"{{rings: 1, isd_m: {ISD_M}}}" if world == "seven cells" else "{}"
    made = sections(f"""
        name=matrix; seed=4; cell.radius_m={RADIUS_M}; rounds={{max_wait_s: 3.0, deadline_s: 2.0}}
        layout={layout}
        handover={{hysteresis_db: 1, time_to_trigger_s: 0.05, measurement_interval_s: 0.1}}
        handover.policy={"finish" if sharing == "dynamic" else "drop"}
        devices={{count: {DEVICES}, clock_hz: 1e7, idle_power_w: 0.01}}
        radio={{preset: journal, bandwidth_hz: 3e5, sharing: {sharing}}}
        sessions={{name: membership, count: 2, changed_share: 0.4, min_rounds: 4, max_rounds: 8}}
        workload={{payload_bits: 300000, flops_per_sample: 1e4}}
    """)
    chosen = {"mobility": {"name": mobility, **MOBILITY[mobility]}, "churn": {"name": churn, **CHURN[churn]}}
    made = within(made, {"areas": AREAS, "devices": {**chosen, **devices}, "radio": WORLDS[world]})
    return Scenario.model_validate(made)


def run(tmp_path: Path, made: Scenario) -> dict[str, int]:
    """Run a scenario, check its tables, and return how often each event and outcome occurs."""
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
    recorded = {"record": RecordSettings(positions_s=MAP_S)}
    found = run(tmp_path, scenario(mobility, world, sharing).model_copy(update=recorded))
    if mobility != "static":
        assert found.get("departure", 0) + found.get("handover", 0) > 0, "no device leaves: raise the speed"
    # a device may leave its cell between two ticks; at each recorded time, a served device has a gain and a SINR
    positions = edgefl.Results(tmp_path / "run").positions
    served = positions[positions["cell"].notna()]
    assert len(served) > 0
    if WORLDS[world]:
        assert np.isfinite(served[["gain_db", "sinr_db"]]).all(axis=None)


@pytest.mark.parametrize("world", ["one cell, round", "seven cells"])
@pytest.mark.parametrize("churn", CHURN)
def test_churn(churn: str, world: str, tmp_path: Path) -> None:
    found = run(tmp_path, scenario("random_waypoint", world, "static", churn))
    assert ("switched_off" in found) == (churn in ("poisson", "duty_cycle", "availability_trace"))
