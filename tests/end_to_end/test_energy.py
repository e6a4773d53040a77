"""Test that rounds.csv, devices.csv, ledger.csv, `costs` and `compare` agree on a run's energy."""

import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import edgefl
from edgefl.analysis.measures.energy import SHARES, energy_by_class
from edgefl.analysis.reports.costs import report_costs
from edgefl.analysis.runs.load import load_runs
from tests.tables import sections
from tests.tools.invariants import check_run
from tests.tools.run_tables import parts_of

SMALL: dict[str, Any] = sections("""
    name=energy; seed=3; devices={count: 8, indoor_share: 0.5}; sessions={name: schedule, count: 2, rounds: 4}
    workload={payload_bits: 3.0e5, flops_per_sample: 1.0e5}
""")
# scenarios with tail energy for each kind of round: with a selector, a deadline, overlap, a shared band, or training
WORLDS: dict[str, dict[str, Any]] = {
    "by the clock": {"rounds": {"every_s": 4}},
    "some of all": {"rounds": {"selector": {"name": "uniform", "count": 3}}},
    "deadline": {"rounds": {"deadline_s": 0.05, "every_s": 1}},
    "over-selection": {"rounds": {"selector": {"name": "uniform", "count": 3}, "over_selection": 1.7}},
    "fedbuff": {"rounds": {"server": {"name": "fedbuff", "buffer": 3}}, "radio": {"sharing": "dynamic"}},
    "cells": sections("""
        layout={rings: 1, isd_m: 200.0, federations: all}
        devices={count: 60, mobility: {name: random_waypoint, speed_min_m_s: 20, speed_max_m_s: 30}}
    """),
    "batteries": sections("""
        devices={count: 8, battery_j: 3.0, recharge_w: 0.05, mobility: static}; rounds={every_s: 2}
    """),
    "two federations": sections("""
        federations={a: {share: 0.5}, b: {share: 0.5, rounds: {every_s: 3}}}; radio={sharing: dynamic}
    """),
    "learning": sections("""
        workload=null; learning={dataset: digits, model: logistic, local: {batch: 16}, warm_start: similarity}
    """),
}


def scenario(world: str) -> dict[str, Any]:
    found = {**SMALL, **WORLDS[world]}
    return {key: value for key, value in found.items() if value is not None}


@pytest.mark.parametrize("world", WORLDS)
def test_all_tables_of_a_run_tell_one_energy(world: str, tmp_path: Path, unrendered: None) -> None:
    run = edgefl.simulate(scenario(world), tmp_path / "run")
    assert check_run(run) == []  # check_run compares rounds, devices and ledger for each part of the energy
    parts = parts_of(run).values()
    rounds, devices, ledger = (
        pd.concat([pd.read_csv(part / f"{name}.csv") for part in parts])
        for name in ("rounds", "devices", "ledger")
    )
    energy_j = rounds.energy_j.sum()
    assert rounds.energy_tail_j.sum() > 0.05 * energy_j  # otherwise the tails would not be tested
    assert devices.energy_j.sum() == pytest.approx(energy_j, rel=1e-12)
    assert ledger.energy_j.sum() == pytest.approx(energy_j, rel=1e-12)
    assert (ledger.energy_j + ledger.idle_j).tolist() == pytest.approx(ledger.total_j.tolist(), rel=1e-12)
    costs = [
        report_costs(load_runs(part), out=tmp_path / f"costs {part.name}").numbers["costs.csv"]
        for part in parts
    ]
    assert sum(found.energy_j.sum() for found in costs) == pytest.approx(energy_j, rel=1e-12)
    assert sum(found.total_j.sum() for found in costs) == pytest.approx(ledger.total_j.sum(), rel=1e-12)
    for part in parts:
        of_part = pd.read_csv(part / "ledger.csv")
        shares = energy_by_class(load_runs(part))[[*SHARES]]
        assert shares.to_numpy().sum() == math.fsum(of_part.total_j)
        assert shares.circuit_j.sum() == pytest.approx(of_part.circuit_j.sum(), rel=1e-12)
        assert (
            (of_part.circuit_j > 0) == (of_part.transmit_j > 0)
        ).all()  # a device that transmits also spends circuit energy
        assert (of_part.circuit_j <= of_part.transmit_j).all()
    if world == "learning":
        compared = edgefl.compare(run, out=tmp_path / "compare")
        assert compared.table.energy_j_mean.tolist() == pytest.approx([energy_j], rel=1e-12)
