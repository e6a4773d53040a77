"""Derive exact transfers, rounds and energies, slot by slot, for a band that few devices share in a TDD frame.

Links are so strong that every slot has the highest rate, so a share b of a band W carries b W cap bits per second
while its direction is served. A transfer begins and ends at borders of slots: it ends with the slot of its last bit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

from tests.tools.joints.references.reading import Compared, rows_of, run

SLOT_S = Fraction(1, 2000)
SITES = [[0, 0], [60, 0], [30, 50]]
TIME_DIGIT_S, ROUNDING = 2e-9, 1e-9  # times have nine decimals; energies are sums of few terms
RECEIVE_W, SEND_W = 0.1, 10.0  # 40 dBm
CYCLES = 8  # FLOPs per cycle
STRONG = {  # SNR of 100 dB and more, where hardly one fade in 1e8 slots lowers the rate below the cap
    "preset": "journal",
    "path_loss": "free_space",
    "propagation": {"shadowing": "spatial", "shadowing_std_db": 0},
    "budget": {"noise_dbm_hz": -200, "server_power_dbm": 70},
}


class Tie(Exception):
    """A tie: a last bit arrives exactly at a slot's end, so that rounding decides in which slot the transfer ends."""


@dataclass
class Flow:
    """A device's transfer; left: bits not yet sent; begin, end: slots."""

    device: int
    left: Fraction
    begin: int
    share: Fraction | None = None  # share of the band, if it is constant during the round
    end: int = 0


@dataclass
class Team:
    """The devices of one federation in one cell; rounds: begin, end, and times of each device's transfers."""

    devices: Sequence[int]
    weight: int
    round_begin: Fraction = Fraction(0)
    rounds: list[tuple[Fraction, Fraction, dict[int, list[Fraction]]]] = field(default_factory=list)
    times: dict[int, list[Fraction]] = field(default_factory=dict)  # begin and end of downlink, then uplink


def timetable(case: Mapping[str, Any], teams: Sequence[Team]) -> None:
    """Run the teams of a cell until each has finished its rounds."""
    for team in teams:
        _open(case, team)
    slot, flows = 0, {way: list[Flow]() for way in ("D", "U")}
    while any(len(team.rounds) < case["rounds"] for team in teams):
        for team in teams:
            for device, times in team.times.items():
                way = {0: "D", 2: "U"}.get(len(times))
                if way and _ready(case, team, device) <= slot:
                    held = None if case["dynamic"] else Fraction(1, len(team.devices))
                    flows[way].append(Flow(device, Fraction(case["bits"]), slot, held))
                    times.append(slot * SLOT_S)
        for way, under_way in flows.items():
            share_of = _shares(teams, under_way)
            moved = weight(case, way, slot) * case["cap"] * case["band_hz"] * SLOT_S
            for flow in list(under_way):
                flow.left -= (flow.share or share_of[flow.device]) * moved
                if flow.left == 0:
                    raise Tie
                if flow.left < 0:
                    under_way.remove(flow)
                    team = next(team for team in teams if flow.device in team.devices)
                    team.times[flow.device].append((slot + 1) * SLOT_S)
        slot += 1
        for team in teams:
            if len(team.rounds) < case["rounds"] and all(len(times) == 4 for times in team.times.values()):
                end = max(times[-1] for times in team.times.values()) + case["server_s"]
                team.rounds.append((team.round_begin, end, team.times))
                team.round_begin = end
                _open(case, team)


def weight(case: Mapping[str, Any], way: str, slot: int) -> Fraction:
    """Return the fraction of a slot in which a direction is served."""
    if case["pattern"] is None:
        return Fraction(1)
    letter = case["pattern"][slot % len(case["pattern"])]
    symbols = dict(zip("DGU", case["special"], strict=True))
    return Fraction(symbols[way], 14) if letter == "S" else Fraction(letter == way)


def airtime_s(case: Mapping[str, Any], way: str, begin: Fraction, end: Fraction) -> float:
    """Return the time in s for which a direction is served from a transfer's beginning to its end."""
    slots = range(int(begin / SLOT_S), int(end / SLOT_S))
    return float(sum((weight(case, way, slot) for slot in slots), Fraction(0)) * SLOT_S)


def _open(case: Mapping[str, Any], team: Team) -> None:
    team.times = {device: [] for device in team.devices} if len(team.rounds) < case["rounds"] else {}


def _ready(case: Mapping[str, Any], team: Team, device: int) -> int:
    """Return the first slot of a device's next transfer, which begins when the device is ready or later."""
    times = team.times[device]
    may_s = times[1] + case["compute_s"][device] if times else team.round_begin
    return ceil(may_s / SLOT_S)


def _shares(teams: Sequence[Team], flows: Sequence[Flow]) -> dict[int, Fraction]:
    """Divide the band among teams that have flows, in proportion to their weights, and equally within a team."""
    active = {flow.device for flow in flows}
    with_some = [(team, active & set(team.devices)) for team in teams if active & set(team.devices)]
    together = sum(team.weight for team, _ in with_some)
    return {id_: Fraction(team.weight, together * len(some)) for team, some in with_some for id_ in some}


def compare(rng: Random, folder: Path) -> Compared:
    """Draw a case, run it, and compare it with the timetable."""
    case, data = drawn(rng)
    out, compared = run(data, folder), Compared()
    parts, rounds = rows_of(out, "devices"), rows_of(out, "rounds")
    members: dict[tuple[str, str], set[int]] = {}
    for row in parts:
        members.setdefault((row["cell"], row.get("federation") or ""), set()).add(int(row["device"]))
    for cell in sorted({cell for cell, _ in members}):
        teams = {
            name: Team(sorted(ids), case["weights"].get(name, 1))
            for (at, name), ids in sorted(members.items())
            if at == cell
        }
        try:
            timetable(case, list(teams.values()))
        except Tie:
            continue
        for name, team in teams.items():
            mine = [row for row in rounds if (row["cell"], row.get("federation") or "") == (cell, name)]
            compared.same("number of rounds", len(mine) == len(team.rounds), len(mine), len(team.rounds))
            for row, (begin, end, times) in zip(mine, team.rounds, strict=False):
                own_s = {"start_s": begin, "end_s": end}
                compared.near(f"cell {cell}, round {row['round']}", row, own_s, TIME_DIGIT_S)
                _compare_parts(compared, case, row["round"], times, parts)
    return compared


def _compare_parts(
    compared: Compared,
    case: Mapping[str, Any],
    round_: str,
    times: Mapping[int, Sequence[Fraction]],
    parts: Sequence[Mapping[str, str]],
) -> None:
    for device, (down, down_end, up, up_end) in times.items():
        (part,) = [one for one in parts if (one["device"], one["round"]) == (str(device), round_)]
        own_s = {
            "downlink_start_s": down,
            "downlink_end_s": down_end,
            "compute_end_s": down_end + case["compute_s"][device],
            "uplink_start_s": up,
            "uplink_end_s": up_end,
        }
        own_j = {
            "energy_rx_j": RECEIVE_W * airtime_s(case, "D", down, down_end),
            "energy_tx_j": SEND_W * airtime_s(case, "U", up, up_end),
        }
        where = f"device {device} in round {round_}"
        compared.near(where, part, own_s, TIME_DIGIT_S)
        compared.near(where, part, own_j, relative=ROUNDING)


def drawn(rng: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Draw a case and its scenario."""
    count, several = rng.randint(1, 5), rng.random() < 0.4
    weights = {"a": rng.randint(1, 3), "b": rng.randint(1, 3)} if count > 1 and rng.random() < 0.3 else {}
    down = rng.randint(1, 12)
    special = (down, 1, 13 - down)
    clocks_hz = [rng.choice((10**6, 10**7)) + rng.randint(0, 10**5) for _ in range(count)]
    flops, steps, batch = rng.randint(1, 10_000), rng.randint(1, 3), rng.randint(1, 5)
    case: dict[str, Any] = {
        "pattern": rng.choice((None, "DDDSU", "DSUUD", "SU", "S", "DDU")),
        "special": special,
        "band_hz": rng.randint(200_000, 2_000_000),
        "cap": Fraction(rng.randint(1, 8), 4),
        "dynamic": bool(weights) or rng.random() < 0.5,
        "bits": rng.randint(1, 20_000),
        "rounds": rng.randint(1, 3),
        "server_s": Fraction(rng.choice((0, 13)), 10_000),
        "weights": weights,
        "compute_s": [Fraction(flops * steps * batch, clock_hz * CYCLES) for clock_hz in clocks_hz],
    }
    tdd = {"pattern": case["pattern"], "special": ":".join(map(str, special))} if case["pattern"] else None
    data: dict[str, Any] = {
        "name": "band",
        "seed": rng.randint(0, 10**6),
        "cell": {"radius_m": 30, "min_distance_m": 1},
        "layout": {"sites": SITES} if several else {},
        "devices": {
            "count": count,
            "transmit_power_dbm": 40,
            "circuit_power_w": RECEIVE_W,
            "flops_per_cycle": CYCLES,
            "classes": {f"c{k}": {"count": 1, "clock_hz": hz} for k, hz in enumerate(clocks_hz)},
            "classes_by": "ids",
        },
        "radio": {
            **STRONG,
            "bandwidth_hz": case["band_hz"],
            "slot_s": float(SLOT_S),
            "link": {"max_efficiency": float(case["cap"])},
            "sharing": "dynamic" if case["dynamic"] else "static",
            "tdd": tdd,
        },
        "rounds": {"server_s": float(case["server_s"])},
        "sessions": {"name": "schedule", "count": 1, "rounds": case["rounds"]},
        "workload": {
            "payload_bits": case["bits"],
            "flops_per_sample": flops,
            "steps": steps,
            "batch": batch,
        },
    }
    if weights:
        data["federations"] = {name: {"share": 0.5, "weight": each} for name, each in weights.items()}
    return case, data
