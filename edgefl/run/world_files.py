"""Files of a recorded world: tables, JSON, and a scenario that replays it."""

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from edgefl.config.yaml_source import write
from edgefl.run_directory.files import writing
from edgefl.scenario.scenario import written
from edgefl.scenario.world import World

Columns = Mapping[str, Sequence[Any] | np.ndarray]


def scenario_again(world: World, out: Path, tables: str, every_s: float, duration_s: float) -> str:
    """Write the scenario with its devices moved and switched as recorded, up to the recording's end."""
    document = written(world.scenario) | {"duration_s": duration_s}
    devices = document["devices"]
    devices.pop("density_per_km2", None)
    listed = (
        world.fleet.members(1) is not None
    )  # devices listed per session rather than by time stay as they are
    for one in [devices, *devices.get("classes", {}).values()]:
        one.pop("mobility", None)
        if not listed:
            one.pop("churn", None)
    devices["count"] = world.count
    devices["mobility"] = {
        "name": "trace",
        "path": str(out / f"positions.{tables}"),
        "begin_s": 0.0,
        "max_gap_s": 1.5 * every_s,
    }
    if not listed and world.fleet.switches(world.streams):
        devices["churn"] = {"name": "availability_trace", "path": str(out / "switched.json")}
    return write(document)


def joined(blocks: Sequence[Columns], names: Sequence[str]) -> Columns:
    return {name: [value for block in blocks for value in block[name]] for name in names}


def write_table(path: Path, columns: Columns) -> None:
    plain = {
        name: values.tolist() if isinstance(values, np.ndarray) else list(values)
        for name, values in columns.items()
    }
    with writing(path):
        if path.suffix == ".parquet":
            import pyarrow.parquet

            pyarrow.parquet.write_table(pyarrow.table(plain), path)
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(plain)
            rows.writerows(zip(*plain.values(), strict=True))


def write_json(path: Path, document: Any) -> None:
    with writing(path):
        path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
