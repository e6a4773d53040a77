"""Run a scenario for a reference, and read its tables."""

import csv
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import edgefl
from tests.tools.run_tables import parts_of


@dataclass
class Compared:
    """The number of values compared with a reference, and the differences."""

    many: int = 0
    wrong: list[str] = field(default_factory=list)

    def near(
        self,
        where: str,
        row: Mapping[str, str],
        own: Mapping[str, Any],
        absolute: float = 0.0,
        relative: float = 0.0,
    ) -> None:
        """Compare columns of a row with the reference."""
        for name, value in own.items():
            off = math.inf if not row[name] else abs(float(row[name]) - float(value))
            self.same(
                f"{where}: {name}", off <= absolute + relative * abs(float(value)), row[name], float(value)
            )

    def same(self, what: str, holds: bool, found: object, own: object) -> None:
        """Record a comparison."""
        self.many += 1
        if not holds:
            self.wrong.append(f"{what} is {found}, but {own} in the reference")


def run(data: Mapping[str, Any], folder: Path) -> Path:
    """Run a scenario; return its run directory."""
    return Path(edgefl.simulate(edgefl.load_scenario(data), folder / "run", device="cpu", threads=1))


def rows_of(out: Path, table: str) -> list[dict[str, str]]:
    """Return the rows of a table; with several federations, each row names its federation."""
    rows: list[dict[str, str]] = []
    for name, part in parts_of(out).items():
        with (part / f"{table}.csv").open(encoding="utf-8", newline="") as file:
            rows += [{**row, "federation": name} for row in csv.DictReader(file)]
    return rows
