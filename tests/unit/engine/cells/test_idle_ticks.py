"""Test that skipping ticks at which no device has moved does not change a run's tables."""

from pathlib import Path
from typing import Any

import pytest

from edgefl import simulate
from edgefl.engine.cells.handover import EventA3
from edgefl.mobility._legs import Legs
from edgefl.scenario.scenario import Scenario

COMMUTE = {
    "name": "itinerary",
    "begin_hour": "7:58",
    "speed_min_m_s": 8,
    "speed_max_m_s": 14,
    "addresses": {"work": [300.0, 100.0], "lunch": [-200.0, -150.0]},
    "plan": [
        {"leave": "8:00", "to": "work", "spread_min": 1},
        {"leave": "8:04", "to": "lunch", "share": 0.5},
        {"leave": "8:06", "to": "home"},
    ],
}
WORLD: dict[str, Any] = {
    "name": "still",
    "seed": 1,
    "duration_s": 600.0,
    "layout": {"rings": 1, "isd_m": 400, "sectors": 3, "federations": "centre"},
    "radio": {"preset": "journal", "propagation": {"shadowing": "spatial"}},
    "devices": {
        "count": 12,
        "mobility": COMMUTE,
        "classes": {
            "switched": {"count": 4, "churn": {"name": "duty_cycle", "on_s": 100, "off_s": 20}},
            "drained": {"count": 4, "idle_power_w": 0.1, "battery_j": 5.0, "recharge_w": 0.03},
            "steady": {},
        },
    },
    "sessions": {"name": "interval", "length_s": 200},
    "rounds": {"every_s": 60},
    "workload": {"payload_bits": 2_000_000, "flops_per_sample": 1e6},
}


@pytest.mark.parametrize("policy", ["drop", "finish"])
def test_a_run_is_the_same_when_every_tick_is_looked_at(
    policy: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables of commuters that switch off, use up batteries and hand over are the same if every tick is evaluated."""
    scenario = Scenario.model_validate(
        {**WORLD, "handover": {"policy": policy, "measurement_interval_s": 0.5}}
    )
    looks = []
    measure = EventA3.measure

    def counted(self: EventA3, time_s: float, *others: Any) -> Any:
        looks.append(time_s)
        return measure(self, time_s, *others)

    monkeypatch.setattr(EventA3, "measure", counted)
    passed = simulate(scenario, out=tmp_path / "passed")
    some = len(looks)
    looks.clear()
    # now no device stays for a known time, so no tick is skipped
    monkeypatch.setattr(Legs, "still_until_s", lambda self, time_s: time_s)
    whole = simulate(scenario, out=tmp_path / "whole")
    assert len(looks) == pytest.approx(600 * 2, abs=1)
    assert some < 0.8 * len(looks)
    events = (whole / "events.csv").read_text()
    for word in ("handover", "switched_off", "battery_empty"):
        assert word in events
    for name in ("events", "rounds", "devices", "sessions", "ledger"):
        assert (passed / f"{name}.csv").read_bytes() == (whole / f"{name}.csv").read_bytes()


def test_legs_tell_until_when_everybody_stays() -> None:
    """No device moves at home or at work until the first device leaves; during the commute, some always move."""
    from tests.unit.mobility.test_itinerary import TO_WORK, at, start

    movement = start(people=50, plan=[TO_WORK, {"leave": "17:30", "to": "home"}])
    assert isinstance(movement, Legs)
    home_until_s = movement.still_until_s(at(0, 3))
    assert at(0, 7.75) <= home_until_s <= at(0, 8.25)
    before, after = movement.positions_m(home_until_s - 1e-3), movement.positions_m(home_until_s + 1.0)
    assert (before == movement.positions_m(at(0, 3))).all()
    assert (before != after).any()
    assert movement.still_until_s(at(0, 8.5)) == at(0, 8.5)
    assert movement.still_until_s(at(0, 12)) == pytest.approx(at(0, 17.5), abs=1e-6)
