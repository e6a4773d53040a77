"""Whether runs have the same server: if not, rounds are not the same thing in all, and do not compare."""

import math
from typing import Any

import pandas as pd

from edgefl.analysis.runs.scenario_keys import of_points

SERVER, USUAL = "rounds.server", "synchronous"
# columns of a comparison, and metrics, that count rounds or are of a round
BY_ROUNDS = ("first", "rounds", "gain", "latency", "latency_mean", "round_energy")
METRICS = ("rounds_to_target", "accuracy_first", "latency_s", "latency_mean_s", "round_energy_j")


def several_servers(info: pd.DataFrame) -> str:
    """Say which servers the runs have, if they have several; empty: rounds are the same thing in all.

    Args:
        info: of `Runs`.
    """
    servers = {variant: _server(keys) for (_, variant), keys in of_points(info).items()}
    if len(set(servers.values())) < 2:
        return ""
    told = ", ".join(f"{variant} {server}" for variant, server in servers.items())
    return f"a round is not the same thing in all variants (rounds.server: {told})"


def refuse_rounds(several: str, asked: str) -> None:
    """Refuse to compare by rounds.

    Args:
        several: of `several_servers`.
        asked: the name of what counts rounds.

    Raises:
        ValueError: runs have several servers.
    """
    if several:
        raise ValueError(f"'{asked}' counts rounds, and {several}: compare seconds or joules")


def without_rounds(table: pd.DataFrame, several: str) -> pd.DataFrame:
    """Return a table of variants with empty cells where it counts rounds, if runs have several servers."""
    begins = (*METRICS, "gain", "speed_up_rounds")
    counted = [column for column in table if str(column).startswith(begins)]
    return table.assign(**dict.fromkeys(counted, math.nan)) if several else table


def _server(keys: dict[str, Any]) -> str:
    name = str(keys.get(SERVER, USUAL))
    beside = {
        key.removeprefix(f"{SERVER}."): value for key, value in keys.items() if key.startswith(f"{SERVER}.")
    }
    return name + (f" ({', '.join(f'{key} {value}' for key, value in beside.items())})" if beside else "")
