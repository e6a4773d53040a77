"""Test that tables agree if links fail, and that `t311_s: 0` turns off re-establishment and nothing else."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import edgefl
from edgefl.testing.cell import within
from tests.tables import sections
from tests.tools.invariants import check_run


def tables(path: Path, policy: str, **radio: Any) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return devices, events and ledger of 20 devices that drive through seven `nr` cells with weak links."""
    scenario = sections(f"""
        name=driving; seed=100; layout={{rings: 1, isd_m: 800}}; handover={{policy: {policy}}}
        devices={{count: 20, battery_j: 1000, idle_power_w: 0.01, power: journal, indoors_by: place}}
        devices.mobility={{name: random_waypoint, area_factor: 1.0, speed_min_m_s: 10, speed_max_m_s: 20}}
        radio={{preset: nr, bandwidth_hz: 20e6, propagation: {{shadowing: spatial}}, tdd: null}}
        radio.budget.array_gain_db=0.0; radio.monitoring.coverage_margin_db=null
        sessions={{name: schedule, count: 1, rounds: 3}}; rounds={{every_s: 40, deadline_s: 30}}
        workload={{payload_bits: 4000000, flops_per_sample: 1e5}}
    """)
    run = edgefl.simulate(within(scenario, {"radio": radio}), out=path)
    assert check_run(run) == []
    return tuple(pd.read_csv(run / f"{name}.csv") for name in ("devices", "events", "ledger"))  # type: ignore[return-value]


@pytest.mark.parametrize("policy", ["finish", "drop"])
def test_the_tables_of_links_that_fail_agree(tmp_path: Path, policy: str) -> None:
    devices, events, ledger = tables(tmp_path / "run", policy)
    lost, again = (events[events.event == name] for name in ("radio_link_failure", "reestablished"))
    assert len(lost) == devices.link_failures.sum() > 0
    assert 0 < len(again) <= len(lost)
    assert ledger.stalled_j.sum() == pytest.approx(devices.stalled_j.sum())
    assert ledger.stalled_s.sum() == pytest.approx(devices.stalled_s.sum())
    assert (devices.stalled_j <= devices.energy_rx_j + devices.energy_tx_j).all()
    # an interruption is a whole number of attempts, each of 0.4 s
    attempts = again.interruption_s / 0.4
    assert (attempts - attempts.round()).abs().max() < 1e-6
    without, _, _ = tables(tmp_path / "without", policy, monitoring={"t311_s": 0})
    assert without.outcome.str.startswith("failed").any()
    assert not devices.outcome.str.startswith("failed").any()  # devices wait until the deadline


WEAK_ONES: dict[str, dict[str, Any]] = {
    "no deadline": sections("""
        cell={radius_m: 2000}; devices={count: 8, mobility: {name: static, doppler_speed_m_s: 3}}
        radio={budget: {array_gain_db: 20}, bandwidth_hz: 5e6, link: {downlink_layers: 1, frequency_taps: 4}}
        seed=5121
    """),
    "deadline": sections("""
        cell={radius_m: 800}; devices={count: 12, mobility: {name: static, doppler_speed_m_s: 3}}; radio={}
        rounds={deadline_s: 6}; seed=1
    """),
}


@pytest.mark.parametrize("name", WEAK_ONES)
def test_who_has_lost_the_link_misses_no_round(name: str, tmp_path: Path) -> None:
    """All devices take part in each round, which begins at most one interruption late; no device moves or is off."""
    shared = sections("""
        name=weak; radio={preset: nr, monitoring: {coverage_margin_db: none}}
        sessions={name: schedule, count: 1, rounds: 8}; workload={payload_bits: 100000, flops_per_sample: 1e5}
    """)
    scenario = edgefl.load_scenario(within(shared, WEAK_ONES[name]))
    run = edgefl.simulate(scenario, out=tmp_path / "run")
    assert check_run(run) == []
    rounds = pd.read_csv(run / "rounds.csv")
    failed = rounds.participants - rounds.completed
    assert (rounds.participants == WEAK_ONES[name]["devices"]["count"]).all()
    assert (failed > 0).any()
    assert (rounds.connecting[1:].to_numpy() <= failed[:-1].to_numpy()).all()
    assert (rounds.connecting[1:] > 0).any()
    waits_s = rounds.start_s[1:].to_numpy() - rounds.end_s[:-1].to_numpy()
    latency_s = scenario.handover.handover_latency_s
    assert ((waits_s > 0) == (rounds.connecting[1:] > 0)).all()
    assert (waits_s <= latency_s + 1e-9).all()
