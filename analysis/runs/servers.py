"""Detect runs with different servers, which cannot be compared by rounds since their rounds mean different things."""

import math
from typing import Any

import pandas as pd

from edgefl.analysis.runs.scenario_keys import of_points

SERVER, USUAL = "rounds.server", "synchronous"
# columns of a comparison, and metrics, that count rounds or measure a round
BY_ROUNDS = (
    *("first", "rounds", "gain", "latency", "latency_ratio", "latency_mean", "round_energy"),
    "round_energy_ratio",
)
METRICS = ("rounds_to_target", "accuracy_first", "latency_s", "latency_mean_s", "round_energy_j")


def several_servers(info: pd.DataFrame) -> str:
    """Describe the servers of the runs in `Runs.info` if they differ; return '' if all have the same server."""
    points = {variant: keys for (_, variant), keys in of_points(info).items()}
    servers = {variant: _server(keys) for variant, keys in points.items()}
    if len(set(servers.values())) < 2:
        return ""
    names = {variant: str(keys.get(SERVER, USUAL)) for variant, keys in points.items()}
    alike = len(set(names.values())) < len(set(servers.values()))  # servers differ in parameters only
    told = ", ".join(f"{variant} {server}" for variant, server in (servers if alike else names).items())
    return f"a round means different things in these variants (rounds.server: {told})"


def refuse_rounds(several: str, asked: str) -> None:
    """Raise an error if `asked`, which counts rounds, compares runs with different servers (`several`)."""
    if several:
        raise ValueError(f"'{asked}' counts rounds, and {several}: compare seconds or joules")


def without_rounds(table: pd.DataFrame, several: str) -> pd.DataFrame:
    """Set the columns that count rounds to NaN if the runs have different servers."""
    begins = (*METRICS, "gain", "speed_up_rounds")
    counted = [column for column in table if str(column).startswith(begins)]
    return table.assign(**dict.fromkeys(counted, math.nan)) if several else table


def _server(keys: dict[str, Any]) -> str:
    name = str(keys.get(SERVER, USUAL))
    beside = {
        key.removeprefix(f"{SERVER}."): value for key, value in keys.items() if key.startswith(f"{SERVER}.")
    }
    return name + (f" ({', '.join(f'{key} {value}' for key, value in beside.items())})" if beside else "")
