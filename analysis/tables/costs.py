"""Costs in words and rounded numbers: energy, time, and the journal paper's cost analysis."""

import math
from collections.abc import Sequence

import pandas as pd

from edgefl.analysis.averages import spread
from edgefl.analysis.formatting import ENERGY_UNITS, NOTHING, TIME_UNITS, amount, unit_for, with_spread

ENERGY = {
    "receive_j": "receive",
    "transmit_j": "transmit",
    "compute_j": "compute",
    "tail_j": "tails of transfers",
    "energy_j": "energy, the sum",
    "probe_j": "of it in probe rounds",
    "wasted_j": "of it wasted",
    "excess_j": "of it above the least",
    "idle_j": "idle, besides",
    "total_j": "energy and idle",
    "server_j": "server, besides",
}
RUN_TIME = {
    "rounds_s": "training rounds",
    "probe_s": "probe rounds",
    "between_s": "between rounds",
    "simulated_s": "in all",
}
STEP_TIME = {
    f"{who}{step}_s": f"{words}: {step}"
    for who, words in (("", "mean device"), ("slowest_", "slowest device"))
    for step in ("downlink", "compute", "uplink", "waiting")
}
COUNTS = {
    "rounds": "rounds (broadcasts)",
    "participations": "participations",
    "uploads": "uploads",
    "epochs": "local epochs",
    "iterations": "local iterations",
}
EXPLANATIONS = (
    "Means over seeds, ± standard deviation. Energy: what learning causes in all devices, as everywhere; wasted: on"
    " updates that were not aggregated; idle: what devices draw that neither work nor have a tail.",
    "Above the least: what the rounds' completed devices have spent on computing and sending more than with the best"
    " shares, powers and clocks for the same work in the same time (record.energy_excess).",
    "Time of a participation: of completed ones in training rounds; waiting: queued between the steps. The slowest"
    " device's steps add up to the latency of a synchronous round.",
    "Stages (J, section V): pilot sessions; gradient, the V probe rounds of each later session; training. A"
    " broadcast is a round; uploads are those that arrived. Models kept: in all cells alike, each of the size of a"
    " transfer.",
)


def tables(breakdown: pd.DataFrame, costs: pd.DataFrame, variants: Sequence[str]) -> dict[str, pd.DataFrame]:
    """Write all tables, [quantities x variants] each, means over seeds: title -> table."""
    written = {}
    for title, words, units in (
        ("Energy of a run", ENERGY, ENERGY_UNITS),
        ("Simulated time of a run", RUN_TIME, TIME_UNITS),
        ("Time of a participation in a training round", STEP_TIME, TIME_UNITS),
    ):
        table, unit = _spreads(breakdown, words, variants, units)
        if len(table):
            written[f"{title} ({unit})"] = table
    written["Cost analysis (J, section V), means over seeds"] = _stages(costs, variants)
    return {title: table for title, table in written.items() if len(table)}


def _spreads(
    frame: pd.DataFrame, words: dict[str, str], variants: Sequence[str], units: tuple[tuple[str, float], ...]
) -> tuple[pd.DataFrame, str]:
    known = {name: title for name, title in words.items() if name in frame and frame[name].notna().any()}
    unit, size = unit_for(frame[list(known)].to_numpy().ravel() if known else [], units)
    columns = {}
    for variant in variants:
        rows = frame[frame["variant"] == variant]
        numbers = [spread("x", rows[name] / size) for name in known]
        columns[variant] = [with_spread(number["x_mean"], number["x_std"]) for number in numbers]
    return pd.DataFrame(columns, index=list(known.values())), unit


def _stages(costs: pd.DataFrame, variants: Sequence[str]) -> pd.DataFrame:
    columns: dict[str, dict[str, str]] = {}
    for variant in variants:
        rows, cells = costs[costs["variant"] == variant], {}
        for stage in ("pilot", "gradient", "training"):
            means = rows[rows["stage"] == stage][[name for name in COUNTS if name in rows]].mean()
            for name, value in means.items():
                cells[f"{stage}: {COUNTS[str(name)]}"] = amount(value, 0)
            bits = rows.loc[rows["stage"] == stage, ["uplink_bits", "downlink_bits"]].mean()
            for way in ("uplink", "downlink"):
                cells[f"{stage}: {way} (Mbit)"] = amount(bits[f"{way}_bits"] / 1e6)
        stored = rows[["stored_models", "stored_temporarily", "model_bits"]].astype(float).mean()
        size = stored["model_bits"] / 8e6
        for name, words in (("stored_models", "kept at the end"), ("stored_temporarily", "kept for a while")):
            count = stored[name]
            known = not math.isnan(count)
            cells[f"models {words}"] = amount(count, 0) if known else NOTHING
            if known and not math.isnan(size):
                cells[f"models {words}"] += f" ({amount(count * size)} MB)"
        columns[variant] = cells
    table = pd.DataFrame(columns).fillna(NOTHING)
    return table[(table != NOTHING).any(axis=1)]
