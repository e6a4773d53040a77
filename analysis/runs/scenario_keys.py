"""The scenario of a run as dotted keys, and what differs between runs: keys, and the servers of their rounds."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

FILE = "scenario.yaml"
NOT_SETTINGS = {"seed", "name"}
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster
SERVER, USUAL = "rounds.server", "synchronous"
# columns of a comparison, and metrics, that count rounds or measure a round
BY_ROUNDS = (
    *("first", "rounds", "gain", "latency", "latency_ratio", "latency_mean", "round_energy"),
    "round_energy_ratio",
)
METRICS = ("rounds_to_target", "accuracy_first", "latency_s", "latency_mean_s", "round_energy_j")


def keys_of(run: str | Path) -> dict[str, Any]:
    """Read a run's scenario.yaml as dotted key -> value, with a component's name at its key; empty without a file."""
    file = Path(run) / FILE
    if not file.exists() and not file.is_symlink():
        return {}
    with scenario_of(run) as written:
        return flat(written)


@contextmanager
def scenario_of(run: str | Path) -> Iterator[dict[str, Any]]:
    """Yield a run's scenario.yaml; an error inside the `with` block is reported as a fault of the file.

    Raises:
        ValueError: the file is damaged; the message names it.
    """
    file = Path(run) / FILE
    written = _read(file)
    try:
        yield written
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        what = f"it has no key {error}" if isinstance(error, KeyError) else str(error)
        raise ValueError(
            f"{file}: was not written by a run or was changed ({what}); run the scenario again"
        ) from error


def _read(file: Path) -> Any:
    try:
        return yaml.load(file.read_text(encoding="utf-8"), Loader=Loader)
    except (OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise ValueError(f"cannot read {file} ({reason})") from error


def flat(tree: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Flatten nested settings to dotted keys, with a component's name at its own key."""
    keys: dict[str, Any] = {}
    for key, value in tree.items():
        dotted = above if key == "name" and above else f"{above}.{key}" if above else str(key)
        if isinstance(value, Mapping):
            keys |= flat(value, dotted)
        else:
            keys[dotted] = value
    return keys


def of_points(info: pd.DataFrame) -> dict[tuple[Any, str], dict[str, Any]]:
    """Read the keys of each setting and variant from one run, since the other runs differ only in their seeds."""
    first = info.drop_duplicates(["setting", "variant"])
    return {(run.setting, run.variant): keys_of(run.path) for run in first.itertuples()}


def differing(points: Iterable[Mapping[str, Any]]) -> list[str]:
    """List the keys with different values at the points, in the order in which the first point has them."""
    several = list(points)
    names = dict.fromkeys(key for point in several for key in point)
    return [
        name
        for name in names
        if name not in NOT_SETTINGS and len({repr(point.get(name)) for point in several}) > 1
    ]


def several_servers(info: pd.DataFrame) -> str:
    """Describe the servers of the runs in `Runs.info` if they differ; return '' if all have the same server.

    Rounds of different servers mean different things, so they cannot be compared by rounds.
    """
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
