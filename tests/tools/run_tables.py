"""Read the tables of a run directory as plain rows, without edgefl's code."""

import csv
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

Row = dict[str, Any]
RoundKey = tuple[float, float, str, float]  # a round's cell, session, phase, number

DEFAULT_SLOT_S = 0.5e-3
TEXTS = {
    "phase",
    "outcome",
    "event",
    "detail",
    "reason",
    "devices",
    "labels",
    "warm_start",
    "weights",
    "class",
    "federation",
}


@dataclass(frozen=True)
class Tables:
    """The tables of a run as one dict per row, with numbers as floats and empty cells as None."""

    rounds: list[Row]
    devices: list[Row]
    events: list[Row]
    sessions: list[Row]
    ledger: list[Row]
    slot_s: float
    completed: bool
    battery_j: Mapping[str, float | None] = field(
        default_factory=dict
    )  # class -> its devices' battery, None on mains
    cloud: Mapping[str, Any] | None = None  # the scenario's section `cloud`, if any
    recorded: str | int = "all"  # rounds whose devices have rows: all, none, or every n-th

    def has_parts(self, row: Row) -> bool:
        """Return whether a round's devices have rows."""
        if isinstance(self.recorded, str):
            return self.recorded == "all"
        return (row["round"] - 1) % self.recorded == 0

    def parts(self) -> dict[RoundKey, list[Row]]:
        """Return the rows of devices.csv by round."""
        by_round: dict[RoundKey, list[Row]] = defaultdict(list)
        for row in self.devices:
            by_round[round_key(row)].append(row)
        return by_round


def read(directory: Path) -> Tables:
    """Read the tables of a run; rows of several federations are combined, with a column for the federation.

    Raises:
        OSError, ValueError: a table is missing, or holds something other than a number.
    """
    slot_s, completed, recorded, cloud = DEFAULT_SLOT_S, True, "all", None
    battery_j: dict[str, float | None] = {}
    if (scenario := directory / "scenario.yaml").exists():
        keys = yaml.safe_load(scenario.read_text(encoding="utf-8")) or {}
        slot_s = float((keys.get("radio") or {}).get("slot_s", DEFAULT_SLOT_S))
        devices, cloud = keys.get("devices") or {}, keys.get("cloud")
        battery_j = {"": devices.get("battery_j")}
        for name, one in (devices.get("classes") or {}).items():
            own = one.get("battery_j", devices.get("battery_j"))
            battery_j[name] = None if own == "mains" else own
    if (about := directory / "run.json").exists():
        said = json.loads(about.read_text(encoding="utf-8"))
        completed, recorded = said["status"] == "completed", said.get("devices_recorded", "all")
    names = ("rounds", "devices", "events", "sessions", "ledger")
    tables = {
        name: [
            {**row, **({"federation": part} if part else {})}
            for part, folder in parts_of(directory).items()
            for row in _table(folder / f"{name}.csv")
        ]
        for name in names
    }
    if len(parts_of(directory)) > 1:
        tables["events"].sort(key=lambda row: row["time_s"])
    return Tables(
        **tables, slot_s=slot_s, completed=completed, battery_j=battery_j, cloud=cloud, recorded=recorded
    )


def parts_of(directory: Path) -> dict[str, Path]:
    """Return each federation's run directory by name, or the run's directory under an empty name."""
    parts = {path.parent.name: path.parent for path in sorted(Path(directory).glob("*/run.json"))}
    return parts or {"": Path(directory)}


def _table(path: Path) -> list[Row]:
    if (folder := path.with_suffix(".parquet")).is_dir():
        return _parquet(folder)
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: _value(name, cell) for name, cell in row.items()} for row in csv.DictReader(file)]


def _parquet(folder: Path) -> list[Row]:
    import pyarrow.parquet

    rows: list[Row] = pyarrow.parquet.read_table(folder).to_pylist()
    return [
        {name: float(cell) if isinstance(cell, int) else cell for name, cell in row.items()} for row in rows
    ]


def _value(name: str, cell: str) -> Any:
    if name in TEXTS:
        return cell
    return float(cell) if cell else None


def round_key(row: Row) -> RoundKey:
    """Return cell, session, phase and number of a row's round."""
    whose = f"{row['phase']} of {row['federation']}" if row.get("federation") else row["phase"]
    return row["cell"], row["session"], whose, row["round"]


def server_of(row: Row) -> tuple[float, str]:
    """Return a row's cell, and its federation if several share the cells."""
    return row["cell"], row.get("federation") or ""


def named(row: Row) -> str:
    """Return a readable name of a row's round."""
    cell, session, phase, number = round_key(row)
    return f"cell {cell:g}, session {session:g}, {phase} round {number:g}"


def grouped(rows: Sequence[Row], column: str) -> Mapping[Any, list[Row]]:
    """Group rows by the value of a column, in their order."""
    return by(rows, lambda row: row[column])


def by(rows: Sequence[Row], key: Callable[[Row], Any]) -> Mapping[Any, list[Row]]:
    """Group rows by a key, and keep their order."""
    groups: dict[Any, list[Row]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return groups
