"""Derive a working day by hand: its rounds, duration, sessions by the clock, areas, classes, and idle time.

In one cell of 100 m, a sensor stands all day. A phone lives 800 m east of the base station, works in the cell, and
walks at 10 m/s. Both areas are so small that every position in them is known to a tenth of a millimetre.
"""

import csv
import math
from pathlib import Path
from typing import Any

import pytest
import simpy

from edgefl.channel.energy import compute_time_s
from edgefl.rng import Streams
from edgefl.run.api import simulate
from edgefl.scenario.scenario import Scenario
from edgefl.scenario.world import World

DAY_S = 2400.0  # an hour of this day lasts 100 s
HOUR_S = DAY_S / 24
BEGIN_H, WORK_H, HOME_H = 4, 8, 17
EVERY_S, TICK_S = 30.0, 0.1
SPEED_M_S, EDGE_M, HOME_M, WORK_M = 10.0, 100.0, 800.0, 50.0
SPOT_M = 1e-4
FLOPS = 1e6
STEPS, BATCH = 5, 128
ROUNDS = 24
CLOCKS = {"sensor": (2e8, 2.0), "phone": (2e9, 8.0)}  # clock in Hz, FLOPs per cycle


def scenario(**more: Any) -> Scenario:
    def spot(x_m: float) -> dict[str, Any]:
        return {"disc": {"centre_m": [x_m, 0.0], "radius_m": SPOT_M}}

    walk = {
        "name": "attraction",
        "area_factor": HOME_M / EDGE_M + 1,
        "begin_hour": BEGIN_H,
        "day_s": DAY_S,
        "stay_s": 0.05 * HOUR_S,
        "speed_min_m_s": SPEED_M_S,
        "speed_max_m_s": SPEED_M_S,
        "homes": "home",
        "works": "office",
        "rhythm": [
            {"from_hour": 0, "to": {"home": 1}},
            {"from_hour": WORK_H, "to": {"work": 1}},
            {"from_hour": HOME_H, "to": {"home": 1}},
        ],
    }
    own = {name: {"clock_hz": clock, "flops_per_cycle": chi} for name, (clock, chi) in CLOCKS.items()}
    classes = {"sensor": {"count": 1, **own["sensor"]}, "phone": {"mobility": walk, **own["phone"]}}
    return Scenario.model_validate(
        {
            "name": "day",
            "duration_s": DAY_S,
            "cell": {"radius_m": EDGE_M},
            "areas": {"home": spot(HOME_M), "office": spot(WORK_M)},
            "devices": {"count": 2, "idle_power_w": 1.0, "classes": classes, "classes_by": "ids"},
            "radio": {"preset": "journal", "propagation": {"shadowing": "spatial", "shadowing_std_db": 0}},
            "sessions": {"name": "daily", "at_hours": [6, 12], "begin_hour": BEGIN_H, "day_s": DAY_S},
            "rounds": {"every_s": EVERY_S},
            "workload": {
                "payload_bits": 1_000_000,
                "flops_per_sample": FLOPS,
                "steps": STEPS,
                "batch": BATCH,
            },
            **more,
        }
    )


def rows(run: Path, table: str) -> list[dict[str, str]]:
    with (run / f"{table}.csv").open() as file:
        return list(csv.DictReader(file))


def at(hour: float) -> float:
    return (hour - BEGIN_H) * HOUR_S


def sets_out(one: Scenario, from_m: float, not_before_s: float) -> float:
    """Return when the phone starts to walk away from a place, found in its path by bisection."""
    movement = World(one, Streams(one.seed)).movement

    def there(time_s: float) -> bool:
        return abs(movement.positions_m(time_s)[1, 0] - from_m) < 2 * SPOT_M

    low_s = not_before_s
    high_s = next(low_s + step for step in range(1, 200) if not there(low_s + step))
    while high_s - low_s > 1e-7:
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (middle_s, high_s) if there(middle_s) else (low_s, middle_s)
    return high_s


@pytest.fixture(scope="module")
def one() -> Scenario:
    return scenario()


@pytest.fixture(scope="module")
def run(one: Scenario, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate(one, tmp_path_factory.mktemp("day") / "run")


def test_the_grid_is_kept_all_day(run: Path) -> None:
    starts_s = [float(row["start_s"]) for row in rows(run, "rounds")]
    assert starts_s == [EVERY_S * number for number in range(round(DAY_S / EVERY_S))]


def test_who_walks_into_the_cell_is_seen_at_the_next_look(one: Scenario, run: Path) -> None:
    inwards_s = sets_out(one, HOME_M, at(WORK_H)) + (HOME_M - EDGE_M) / SPEED_M_S
    outwards_s = sets_out(one, WORK_M, at(HOME_H)) + (EDGE_M - WORK_M) / SPEED_M_S
    events = [row for row in rows(run, "events") if row["device"] == "1"]
    assert [row["event"] for row in events] == ["arrival", "departure"]
    for row, crossed_s in zip(events, (inwards_s, outwards_s), strict=True):
        # an area is a tenth of a millimetre wide, which is 0.01 ms of a walk
        assert float(row["time_s"]) == pytest.approx(math.ceil(crossed_s / TICK_S) * TICK_S, abs=1e-9)
        assert abs(crossed_s / TICK_S - round(crossed_s / TICK_S)) > 1e-3, "no tick is at the crossing"


def test_sessions_begin_at_their_hours_with_who_is_there(run: Path) -> None:
    sessions = rows(run, "sessions")
    assert [(float(row["start_s"]), row["reason"], row["devices"]) for row in sessions] == [
        (0.0, "start", "0"),
        (210.0, "daily", "0"),  # 6:00 is at 200 s, and the grid's next round at 210 s
        (810.0, "daily", "0 1"),
    ]
    ends_s = [float(row["time_s"]) for row in rows(run, "events") if row["event"] == "session_end"]
    assert ends_s == [at(6), at(12), DAY_S], "earlier sessions end exactly at the hour"


def test_each_class_computes_at_its_own_pace_whenever_it_is_there(run: Path) -> None:
    arrived_s, left_s = (float(row["time_s"]) for row in rows(run, "events") if row["device"] == "1")
    parts = rows(run, "devices")
    for row in parts:
        clock_hz, chi = CLOCKS[row["class"]]
        took_s = float(row["compute_end_s"]) - float(row["compute_start_s"])
        expected_s = compute_time_s(FLOPS, STEPS * BATCH, clock_hz=clock_hz, flops_per_cycle=chi)
        assert took_s == pytest.approx(expected_s, abs=2e-9)  # times in files have nine decimals
    begun_s = [float(row["downlink_start_s"]) for row in parts if row["class"] == "phone"]
    grid_s = [EVERY_S * number for number in range(round(DAY_S / EVERY_S))]
    assert begun_s == [time_s for time_s in grid_s if arrived_s <= time_s < left_s]


def test_idle_time_is_not_stepped_through(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """If no device moves, an hour of idle time between two rounds costs one more event."""
    steps: list[float] = []
    step = simpy.Environment.step

    def counting(env: simpy.Environment) -> None:
        steps.append(env.now)
        step(env)

    monkeypatch.setattr(simpy.Environment, "step", counting)
    counts = []
    for number, rounds in enumerate(({}, {"every_s": 3600.0})):
        still = {"devices": {"count": 2}, "areas": {}, "rounds": rounds, "duration_s": 86_400.0}
        sessions = {"name": "schedule", "count": 1, "rounds": ROUNDS}
        steps.clear()
        simulate(scenario(**still, sessions=sessions), tmp_path / f"run-{number}")
        counts.append(len(steps))
    at_once, each_hour = counts
    assert each_hour == at_once + ROUNDS - 1
