"""Detect runs with different servers, which cannot be compared by rounds since their rounds mean different things."""

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd

from edgefl.analysis.runs.scenario_keys import differing, of_points

SERVER, USUAL = "rounds.server", "synchronous"
# columns of a comparison, and metrics, that count rounds or measure a round
BY_ROUNDS = (
    *("first", "rounds", "gain", "latency", "latency_ratio", "latency_mean", "round_energy"),
    "round_energy_ratio",
)
METRICS = ("rounds_to_target", "accuracy_first", "latency_s", "latency_mean_s", "round_energy_j")


def several_servers(info: pd.DataFrame) -> str:
    """Describe the servers of the runs in `Runs.info` if they differ; return '' if all have the same server."""
    points = of_points(info)
    names = {place: str(keys.get(SERVER, USUAL)) for place, keys in points.items()}
    servers = {}
    for place, keys in points.items():
        own = differing(point for other, point in points.items() if names[other] == names[place])
        servers[place] = _server(names[place], keys, own)
    if len(set(servers.values())) < 2:
        return ""
    alike = len(set(names.values())) < len(set(servers.values()))  # servers differ in parameters only
    shown = servers if alike else names
    told = list(dict.fromkeys(_both(variant, server) for (_, variant), server in shown.items()))
    by_variant = len(told) == info["variant"].nunique()  # otherwise the server is an axis of the grid
    where, told = ("variants", told) if by_variant else ("settings", list(dict.fromkeys(shown.values())))
    return f"a round means different things in these {where} (rounds.server: {', '.join(told)})"


def refuse_rounds(several: str, asked: str) -> None:
    """Raise an error if `asked`, which counts rounds, compares runs with different servers (`several`)."""
    if several:
        raise ValueError(f"'{asked}' counts rounds, and {several}: compare seconds or joules")


def without_rounds(table: pd.DataFrame, several: str) -> pd.DataFrame:
    """Set the columns that count rounds to NaN if the runs have different servers."""
    begins = (*METRICS, "gain", "speed_up_rounds")
    counted = [column for column in table if str(column).startswith(begins)]
    return table.assign(**dict.fromkeys(counted, math.nan)) if several else table


def _both(variant: str, server: str) -> str:
    """Name a variant and its server, once if they have the same name."""
    return server if variant == server.partition(" ")[0] else f"{variant} {server}"


def _server(name: str, keys: dict[str, Any], differ: Sequence[str]) -> str:
    """Name a server, with those of its parameters that differ from those of other servers with its name."""
    own = [key for key in differ if key.startswith(f"{SERVER}.") and key in keys]
    beside = [f"{key.removeprefix(f'{SERVER}.')} {keys[key]}" for key in own]
    return name + (f" ({', '.join(beside)})" if beside else "")
