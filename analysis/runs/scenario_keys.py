"""The scenario of a run as dotted keys, and the keys in which runs differ."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

FILE = "scenario.yaml"
NOT_SETTINGS = {"seed", "name"}
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is ten times faster


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
