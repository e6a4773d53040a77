"""Move and switch a few devices so fast that each leaves its cell or the layout within seconds."""

import csv
import math
from pathlib import Path
from typing import Any

DEVICES = 10  # in the trace
AVAILABILITY = Path(__file__).parents[2] / "scenarios" / "traces" / "availability.json"
FAST: dict[str, Any] = {"speed_min_m_s": 15, "speed_max_m_s": 30}
# all devices leave the cell or the layout within seconds
MOBILITY: dict[str, dict[str, Any]] = {
    "static": {},
    "random_waypoint": {**FAST, "area_factor": 1.4, "pause_s": 0.5},
    "random_direction": {**FAST, "area_factor": 1.3, "travel_s": 2},
    "gauss_markov": {"area_factor": 1.3, "speed_mean_m_s": 20, "speed_std_m_s": 5},
    "manhattan": {**FAST, "block_m": 30},  # in a square with corners outside the cell
    "highway": {"area_factor": 1.0, "away_s": 1},  # vehicles disappear at the cell's edge
    "attraction": {**FAST, "day_s": 60, "stay_s": 3},
    "od_flows": {
        **FAST,
        "begin": {"near": 0.5, "far": 0.5},
        "flows": [{"from_hour": 0, "trips_per_hour": {"near": {"far": 3}, "far": {"near": 2, "far": 1}}}],
        "day_s": 60,
    },
    "itinerary": {
        **FAST,
        "addresses": {"home": "near", "work": "far"},
        "plan": [
            {"leave": "1:00", "spread_min": 60, "to": "work", "days": "weekdays"},
            {"leave": "6:00", "spread_min": 90, "to": "home"},
        ],
        "day_s": 60,
    },
    "trace": {"path": "trace.csv", "max_gap_s": 0.5},
}
CHURN: dict[str, dict[str, Any]] = {
    "always_on": {},
    "poisson": {"on_s": 0.8, "off_s": 0.3},
    "duty_cycle": {"on_s": 0.7, "off_s": 0.2},
    "availability_trace": {"path": str(AVAILABILITY), "reuse": True, "time_scale": 0.1},
    "client_pattern": {"sessions": [[0, 1, 2, 3, 4, 5], [2, 3, 4, 5, 6, 7]]},
}
# `far` extends beyond a cell of 60 m, and beyond seven such cells
AREAS: dict[str, dict[str, Any]] = {
    "near": {"disc": {"centre_m": [10, 0], "radius_m": 30}},
    "far": {"rectangle": {"from_m": [30, 20], "to_m": [90, 60]}},
}


def write_trace(path: Path) -> None:
    """Write a trace of fast devices that arrive late, leave early, have gaps of 0.6 s and leave every cell."""
    with path.open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("t", "id", "x", "y"))
        for tick in range(200):
            t = 0.2 * tick
            for device in range(DEVICES):
                there = 0.05 * device <= t <= 30 - device and tick % (11 + device) > 2
                if there:
                    way_m, angle = 8.0 * device + 15.0 * t, 2.4 * device
                    rows.writerow((t, device, way_m % 180 * math.cos(angle), way_m % 180 * math.sin(angle)))
