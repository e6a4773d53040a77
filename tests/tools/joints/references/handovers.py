"""Derive handovers by event A3: their times and cells on a straight walk among three sectors or sites.

With free-space path loss and 38.901's panels without tilt, differences in power depend on distances and angles only.
"""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import atan2, degrees, hypot, log10, pi, radians, remainder
from pathlib import Path
from random import Random
from typing import Any

from tests.tools.joints.references.reading import Compared, rows_of, run

Point = tuple[float, float]
HEIGHT_M = 10.0 - 1.5  # antennas' height above the devices
NEAREST_M = 10.0  # shorter distances have this distance's path loss
WIDTH_DEG, MOST_DB = 65.0, 30.0  # 38.901, Table 7.3-1
SAMPLE_MS = 200  # sampling interval of the L3 filter, 38.133
TIME_DIGIT_S = 2e-9
FLOAT32_DB = 1e-4  # ten times the float32 resolution at 100 dB; cases with smaller gaps are skipped


class Close(Exception):
    """A measurement so close to a threshold that rounding decides a handover."""


@dataclass(frozen=True)
class Walk:
    """A device's straight walk from one point to another."""

    begin: Point
    end: Point
    duration_ms: int

    def at(self, time_ms: int) -> Point:
        """Return the device's position at a time."""
        part = time_ms / self.duration_ms
        (x0, y0), (x1, y1) = self.begin, self.end
        return x0 + part * (x1 - x0), y0 + part * (y1 - y0)


def power_db(case: Mapping[str, Any], place: Point) -> list[float]:
    """Return the received power of each cell in dB, up to a common constant."""
    powers = []
    for x, y in case["sites"]:
        across, along = place[0] - x, place[1] - y
        flat_m = hypot(across, along)
        loss_db = 20 * log10(hypot(max(flat_m, NEAREST_M), HEIGHT_M))
        if not case["sectors"]:
            powers.append(-loss_db)
            continue
        below_deg = degrees(atan2(HEIGHT_M, flat_m))
        for panel in range(3):
            ahead = radians(case["azimuth_deg"] + 120 * panel)
            off_deg = degrees(remainder(atan2(along, across) - ahead, 2 * pi))
            # elevation in the panel's coordinates, which without tilt is the elevation above the horizon
            side_db = min(12 * (off_deg / WIDTH_DEG) ** 2, MOST_DB)
            down_db = min(12 * (below_deg / WIDTH_DEG) ** 2, MOST_DB)
            powers.append(-loss_db - min(side_db + down_db, MOST_DB))
    return powers


def handovers(case: Mapping[str, Any], walk: Walk) -> list[tuple[int, int, int, int]]:
    """Return a device's handovers: time, source, target, and time in the source cell; times in ms."""
    interval, trigger = case["interval_ms"], case["trigger_ms"]
    enter_db, leave_db = case["offset_db"] + case["hysteresis_db"], case["offset_db"] - case["hysteresis_db"]
    kept = (1 - 0.5 ** (case["filter_k"] / 4)) ** (interval / SAMPLE_MS)
    serving, since, entered = _strongest(power_db(case, walk.at(0))), 0, dict[int, int]()
    filtered: list[float] | None = None
    found = []
    for now in range(interval, case["end_ms"], interval):
        measured = power_db(case, walk.at(now))
        filtered = [
            kept * before + (1 - kept) * power
            for before, power in zip(filtered or measured, measured, strict=True)
        ]
        if now < since:  # during the interruption the device has no cell
            continue
        for cell, power in enumerate(filtered):
            gap_db = power - filtered[serving]
            if cell == serving:
                continue
            if min(abs(gap_db - enter_db), abs(gap_db - leave_db)) < FLOAT32_DB:
                raise Close
            if gap_db < leave_db:
                entered.pop(cell, None)
            if gap_db > enter_db:
                entered.setdefault(cell, now)
        first = min(entered.values(), default=None)
        if first is None or first + trigger >= now + interval or first + trigger >= case["end_ms"]:
            continue
        at_once = [cell for cell, time in entered.items() if time == first]
        target, then = max(at_once, key=lambda cell: filtered[cell]), first + trigger
        found.append((then, serving, target, then - since))
        serving, since, entered = target, then + case["latency_ms"], {}
    return found


def _strongest(powers: Sequence[float]) -> int:
    first, second = sorted(powers, reverse=True)[:2]
    if first - second < FLOAT32_DB:
        raise Close
    return powers.index(first)


def compare(rng: Random, folder: Path) -> Compared:
    """Draw a case, run it, and compare its handovers with those of the walks."""
    case, walks, data = drawn(rng)
    with (folder / "walk.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("t", "id", "x", "y"))
        for id_, walk in enumerate(walks):
            table.writerow((0, id_, *walk.begin))
            table.writerow((walk.duration_ms / 1000, id_, *walk.end))
    data["devices"]["mobility"]["path"] = str(folder / "walk.csv")
    events = [row for row in rows_of(run(data, folder), "events") if row["event"] == "handover"]
    compared = Compared()
    for id_, walk in enumerate(walks):
        try:
            own = handovers(case, walk)
        except Close:
            continue
        rows = [row for row in events if row["device"] == str(id_)]
        cells = [(int(row["from_cell"]), int(row["cell"])) for row in rows]
        own_cells = [(source, target) for _, source, target, _ in own]
        compared.same(f"handovers of device {id_}", cells == own_cells, cells, own)
        for row, (time, _, _, stay) in zip(rows, own, strict=False):
            own_s = {"time_s": time, "stay_s": stay, "interruption_s": case["latency_ms"]}
            in_s = {name: ms / 1000 for name, ms in own_s.items()}
            compared.near(f"device {id_}", row, in_s, TIME_DIGIT_S)
    return compared


def drawn(rng: Random) -> tuple[dict[str, Any], list[Walk], dict[str, Any]]:
    """Draw a case with its walks, and its scenario."""
    sectors = rng.random() < 0.6
    sites = [[0, 0]] if sectors and rng.random() < 0.6 else [[0, 0], [rng.randint(60, 120), 0], [40, 90]]
    case: dict[str, Any] = {
        "sites": sites,
        "sectors": sectors,
        "azimuth_deg": rng.randint(0, 119),
        "offset_db": rng.choice((-1, 0, 2)),
        "hysteresis_db": rng.choice((0, 0.5, 2, 4)),
        "interval_ms": (interval := rng.choice((40, 100, 200, 480))),
        # times that end between two measurements, at a measurement, or many measurements later
        "trigger_ms": rng.choice((0, 7, interval, 2 * interval, 333, 2003)),
        "latency_ms": rng.choice((0, 50, 150)),
        "filter_k": rng.choice((0, 4, 9)),
        "end_ms": 20_003,
    }
    walks = [Walk(_place(rng), _place(rng), rng.randint(21_000, 40_000)) for _ in range(4)]
    data: dict[str, Any] = {
        "name": "walk",
        "seed": rng.randint(0, 10**6),
        "duration_s": case["end_ms"] / 1000,
        "cell": {"min_distance_m": NEAREST_M},
        "layout": {"sites": sites, "radius_m": 1000}
        | ({"sectors": 3, "azimuth_deg": case["azimuth_deg"]} if sectors else {}),
        "devices": {"count": len(walks), "mobility": {"name": "trace"}},
        "radio": {
            "preset": "journal",
            "path_loss": "free_space",
            "propagation": {"shadowing": "spatial", "shadowing_std_db": 0},
        },
        "handover": {
            "a3_offset_db": case["offset_db"],
            "hysteresis_db": case["hysteresis_db"],
            "time_to_trigger_s": case["trigger_ms"] / 1000,
            "measurement_interval_s": interval / 1000,
            "handover_latency_s": case["latency_ms"] / 1000,
            "l3_filter_k": case["filter_k"],
            "policy": "drop",
        },
        "sessions": {"name": "interval", "length_s": 100},
        "rounds": {"every_s": 5},
        "workload": {"payload_bits": 1, "flops_per_sample": 1},
    }
    return case, walks, data


def _place(rng: Random) -> Point:
    return round(rng.uniform(-200, 200), 3), round(rng.uniform(-200, 200), 3)
