"""Collect the positions, activities and events of one run's devices for a replay."""

import base64
import math
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from edgefl.analysis.html.series import WEIGHTED, label_of, population, timeline
from edgefl.analysis.measures.metrics import of_run
from edgefl.analysis.measures.moving_run import track
from edgefl.analysis.runs.clock import own_clock
from edgefl.analysis.runs.load import Runs
from edgefl.analysis.runs.places import map_of
from edgefl.analysis.runs.reading import forms
from edgefl.analysis.runs.vocabulary import STAGES


class Column(NamedTuple):
    """A column of values of any shape, NaN where missing, and the unit to which the report rounds values."""

    values: np.ndarray
    unit: float = 1.0


def pack(columns: Mapping[str, Column]) -> dict[str, Any]:
    """Pack columns for JSON as differences of whole multiples of a unit, deflated and in base64.

    A track of positions changes little from one time to the next, so differences deflate well: 100 devices for an
    hour at 5 s take a quarter of a megabyte. A browser unpacks the columns with DecompressionStream("deflate"); see
    assets/unpack.js.

    Integers have 16 bits if these suffice, otherwise 32; the smallest integer marks a missing value.

    Raises:
        ValueError: a value is too large for 32 bits.
    """
    heads, parts = [], []
    for name, (values, unit) in columns.items():
        units = np.asarray(values, float) / unit
        known = np.isfinite(units)
        most = float(np.abs(units[known]).max()) if known.any() else 0.0
        if most >= 2**31 - 1:
            raise ValueError(f"column {name}: {most:.3g} units of {unit:g} do not fit in 32 bits")
        kind = np.dtype("<i2" if most < 2**15 - 1 else "<i4")
        whole = np.where(known, np.round(np.where(known, units, 0.0)), np.iinfo(kind).min).astype(kind)
        steps = np.diff(whole, axis=-1, prepend=kind.type(0))  # wraps around, as the browser's sum does
        # group bytes of equal significance, since the high bytes of small differences are mostly equal
        parts.append(np.ascontiguousarray(steps).view(np.uint8).reshape(-1, kind.itemsize).T.tobytes())
        heads.append({"name": name, "shape": list(whole.shape), "unit": unit, "bytes": kind.itemsize})
    data = zlib.compress(b"".join(parts), 9)
    return {"columns": heads, "data": base64.b64encode(data).decode()}


def unit_of(largest: float, steps: float = 2e9) -> float:
    """Choose the finest unit, a power of ten, in which `largest` is at most `steps`."""
    return 10.0 ** math.ceil(math.log10(largest / steps)) if largest > 0 else 1.0


MOST_PLACES = 800_000  # number of devices x number of times: about 2.5 MB
MOST_ROWS = 60_000  # number of rows of devices and rounds: about 1.5 MB
MOST_EVENTS = 40_000
FRAMES = 240  # number of frames if no positions are recorded
LARGE_M = 3000.0  # 16 bits resolve 0.1 m up to here, and 1 m up to ten times as far
JOULES = ("energy_rx_j", "energy_tx_j", "energy_compute_j", "energy_tail_j", "energy_j")
EVENTS = ("handover", "arrival", "departure", "switched_on", "switched_off", "battery_empty", "battery_back")


def replay_of(runs: Runs, run: Any, share: int = 1) -> dict[str, Any]:
    """Collect and pack the data for a replay of one run; `share` divides the limits on the size of the data."""
    notes: list[str] = []
    layout, areas, streets = map_of(run.path, notes)
    ledger, rows, rounds, events = (
        of_run(table, run) for table in (runs.ledger, runs.devices, runs.rounds, runs.events)
    )
    ids, clock = np.sort(ledger["device"].to_numpy(int)), own_clock(str(run.path))
    classes, class_of = _classes(ledger, ids)
    if len(layout["images"]) > 1:
        notes.append(
            "The layout wraps around: a link that leaves the map goes to the nearest copy of its site."
        )
    places = _places(runs, run, ids, notes, MOST_PLACES // share)
    times_s = places.pop("time_s") if places else np.linspace(0.0, run.simulated_s, FRAMES)
    battery = _battery(ledger, rows, run, ids, times_s, notes)
    frames = {"time_s": Column(times_s, unit_of(run.simulated_s)), **places}
    if battery is not None:
        frames["battery"] = Column(battery, 0.005)
    served = sorted(int(cell) for cell in of_run(runs.sessions, run)["cell"].unique())
    if len(served) > 1:
        notes.append(WEIGHTED)
    return {
        "label": label_of(run, runs),
        "simulated_s": run.simulated_s,
        "clock": None if clock.begin_hour is None else asdict(clock),  # None without a time of day
        **layout,
        "areas": areas,
        "streets": streets,
        "devices": ids.tolist(),
        "classes": classes,
        "class_of": class_of,
        "placed": bool(places),
        "frames": pack(frames),
        **_rows(rows, rounds, ids, run, notes, MOST_ROWS // share),
        **_events(events, ids, run, notes),
        "notes": notes,
        "timeline": timeline(runs, run),
        "population": population({name: column.values for name, column in frames.items()}, served),
    }


def _classes(ledger: pd.DataFrame, ids: np.ndarray) -> tuple[list[str], list[int]]:
    """Return the classes' names, and each device's index among them; without classes, return one empty name."""
    if "class" not in ledger:
        return [""], [0] * len(ids)
    of = ledger.set_index("device")["class"].reindex(ids).fillna("")
    codes, names = pd.factorize(of)
    return [str(name) for name in names], [int(code) for code in codes]


def _places(runs: Runs, run: Any, ids: np.ndarray, notes: list[str], most: int) -> dict[str, Any]:
    """Read tracks [devices, times] of x, y and the serving cell, and the times; empty without records."""
    recorded = any(forms(Path(run.path), "positions"))
    positions = of_run(runs.positions, run) if recorded else pd.DataFrame()
    if not len(positions):
        notes.append(
            "No positions were recorded (record.positions_s: none). Each device is drawn as far from its "
            "base station as it was in its latest round, in an arbitrary direction."
        )
        return {}
    times_s = np.sort(positions["time_s"].unique())
    every = max(1, -(-len(ids) * len(times_s) // most))
    if every > 1:
        notes.append(
            f"Positions are thinned to every {_nth(every)} of the {len(times_s):,} times recorded; in between,"
            " devices move in a straight line."
        )
        kept = times_s[::every]
        positions, times_s = positions[positions["time_s"].isin(kept)], kept
    x_m, y_m, cell = (track(positions, name, ids, times_s) for name in ("x_m", "y_m", "cell"))
    largest_m = max(np.nanmax(np.abs(x_m)), np.nanmax(np.abs(y_m)))
    unit_m = 0.1 if largest_m < LARGE_M else 1.0
    return {"time_s": times_s, "x_m": Column(x_m, unit_m), "y_m": Column(y_m, unit_m), "cell": Column(cell)}


def _battery(
    ledger: pd.DataFrame, rows: pd.DataFrame, run: Any, ids: np.ndarray, times_s: np.ndarray, notes: list[str]
) -> np.ndarray | None:
    """Return batteries' remaining shares [devices, times], NaN on mains; None if batteries or rows are missing."""
    if "left_j" not in ledger or not ledger["left_j"].notna().any():
        return None
    if run.devices_recorded != "all":
        notes.append("The charge of the batteries is unknown, because devices.csv lacks some rounds.")
        return None
    notes.append(
        "Batteries: the energy of each participation, tails included, is deducted when the participation "
        "ends; idle power and recharging are spread evenly over the run."
    )
    of = ledger.set_index("device").reindex(ids)
    capacity_j = (of["total_j"] + of["left_j"] - of["recharged_j"]).to_numpy(float)
    drift_w = ((of["recharged_j"] - of["idle_j"]) / max(run.simulated_s, 1e-9)).to_numpy(float)
    share = np.full((len(ids), len(times_s)), np.nan)
    ends_s = rows[[f"{stage}_end_s" for stage in STAGES]].max(axis=1)
    spent = pd.DataFrame({"device": rows["device"], "end_s": ends_s, "energy_j": rows["energy_j"]}).dropna()
    by_device = {device: group.sort_values("end_s") for device, group in spent.groupby("device")}
    for number, device in enumerate(ids):
        if np.isnan(capacity_j[number]) or capacity_j[number] <= 0:
            continue
        mine = by_device.get(device)
        used_j: Any = 0.0
        if mine is not None:
            sums = np.concatenate([[0.0], mine["energy_j"].cumsum()])
            used_j = sums[np.searchsorted(mine["end_s"], times_s, side="right")]
        share[number] = np.clip(1 + (drift_w[number] * times_s - used_j) / capacity_j[number], 0.0, 1.0)
    return share


def _rows(
    rows: pd.DataFrame, rounds: pd.DataFrame, ids: np.ndarray, run: Any, notes: list[str], most: int
) -> dict[str, Any]:
    """Pack each device's activities in each round, sorted by device and time."""
    every = max(1, -(-len(rows) // most))
    if every > 1:
        notes.append(
            f"Device activity is thinned to every {_nth(every)} round of a session ({len(rows):,} rows are "
            "in devices.csv)."
        )
        rows = rows[rows["round"] % every == 0]
    if run.devices_recorded != "all":
        notes.append(f"devices.csv has rows for these rounds only: {run.devices_recorded}.")
    begins = rounds[["cell", "session", "round", "phase", "start_s"]].drop_duplicates()
    rows = rows.merge(begins, on=["cell", "session", "round", "phase"], how="left").sort_values(
        ["device", "start_s"]
    )
    second = unit_of(run.simulated_s)
    words = sorted(rows["outcome"].unique())
    times = [f"{stage}_{end}_s" for stage in STAGES for end in ("start", "end")]
    bits = ("downlink_bits", "uplink_bits") if len(rows) else ()
    units = {
        **dict.fromkeys(["start_s", *times], second),
        **dict.fromkeys(["session", "round", "cell"], 1.0),
        "outcome": 1.0,
        **{name: max(1.0, unit_of(float(rows[name].max() or 1), 3e4)) for name in bits},
        **dict.fromkeys(JOULES, unit_of(float(rows["energy_j"].max() if len(rows) else 1.0), 3e4)),
        "distance_m": 0.1 if run.simulated_s else 1.0,
    }
    known = rows.assign(outcome=[words.index(word) for word in rows["outcome"]]).reindex(
        columns=["device", *units]
    )
    columns = {
        "device": Column(np.searchsorted(ids, rows["device"])),
        **{name: Column(known[name].to_numpy(float), unit) for name, unit in units.items()},
    }
    return {"rows": pack(columns), "outcomes": words}


def _events(events: pd.DataFrame, ids: np.ndarray, run: Any, notes: list[str]) -> dict[str, Any]:
    """Pack the devices' events, such as handovers, in order of time."""
    mine = events[events["event"].isin(EVENTS) & events["device"].isin(ids)].sort_values("time_s")
    every = max(1, -(-len(mine) // MOST_EVENTS))
    if every > 1:
        notes.append(f"Device events are thinned: every {_nth(every)} of {len(mine):,} is shown.")
        mine = mine.iloc[::every]
    none = np.full(len(mine), np.nan)
    columns = {
        "time_s": Column(
            mine["time_s"].to_numpy(float), unit_of(max(run.simulated_s, *mine["time_s"], 1e-9))
        ),
        "event": Column(np.array([EVENTS.index(word) for word in mine["event"]], float)),
        "device": Column(np.searchsorted(ids, mine["device"])),
        **{
            name: Column(mine[name].to_numpy(float) if name in mine else none)
            for name in ("cell", "from_cell")
        },
    }
    return {"events": pack(columns), "event_names": list(EVENTS)}


def _nth(number: int) -> str:
    last = 0 if number % 100 in (11, 12, 13) else number % 10
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(last, 'th') }"
