"""Servers whose rounds overlap keep their books in any world: moving, leaving, empty, in one cell or seven."""

import random
from pathlib import Path
from typing import Any

import pytest

import edgefl
from tests.tools.invariants import check_run

WORLDS = 24


def drawn(draw: random.Random) -> dict[str, Any]:
    """Draw a scenario; whatever it is, a run of it is some seconds long."""
    server: dict[str, Any] = draw.choice(
        [
            {"name": "fedbuff", "buffer": draw.randint(1, 6)},
            {"name": "fedbuff", "buffer": draw.randint(1, 6), "concurrency": draw.randint(1, 10)},
            {"name": "fedasync", "max_staleness": draw.randint(0, 3), "beyond": draw.choice(["drop", "cap"])},
            {"name": "semi_synchronous", "period_s": draw.choice([0.05, 0.3, 1.0])},
            {"name": "tiers", "count": draw.randint(1, 4)},
        ]
    )
    moving = {"name": "random_waypoint", "speed_min_m_s": 10, "speed_max_m_s": 30}
    devices: dict[str, Any] = {
        "count": 12,
        "mobility": draw.choice([{"name": "static"}, moving]),
        "clock_hz": draw.choice([1e7, 1e8]),
    }
    if draw.random() < 0.5:
        devices["churn"] = {"name": "poisson", "lifetime_s": draw.choice([0.5, 2]), "absence_s": 0.5}
    if draw.random() < 0.3:
        devices["battery_j"] = draw.choice([0.3, 2.0])
    radio = {
        "preset": draw.choice(["journal", "nr"]),
        "bandwidth_hz": 5e6,
        "shadowing": "spatial",
        "sharing": "dynamic",
        "scheduler": draw.choice(["round_robin", "proportional_fair", "max_rate"]),
    }
    membership = {"name": "membership", "changed_share": 0.3, "min_rounds": 1, "max_rounds": 5}
    sessions = draw.choice(
        [{"name": "schedule", "rounds": 5}, {"name": "interval", "length_s": 1.5}, membership]
    )
    few = 1 if server["name"] == "fedasync" else min(2, server.get("buffer", 2))
    return {
        "name": "drawn",
        "duration_s": draw.choice([3.0, 60.0]),
        "devices": devices,
        "radio": radio,
        "layout": draw.choice([{}, {"rings": 1, "isd_m": 200, "federations": "all"}]),
        "sessions": {**sessions, "count": 2},
        "rounds": {
            "server": server,
            "min_updates": draw.randint(1, few),
            "server_s": draw.choice([0, 0.01]),
        },
        "workload": {"payload_bits": 50_000, "flops_per_sample": 1e5},
    }


@pytest.mark.parametrize(
    "number", [pytest.param(n, marks=[pytest.mark.slow] * (n > 1)) for n in range(WORLDS)]
)
def test_books_agree(tmp_path: Path, number: int) -> None:
    scenario = edgefl.load_scenario(drawn(random.Random(number))).with_(seed=number)
    assert check_run(edgefl.simulate(scenario, out=tmp_path / "run", device="cpu")) == []
