"""Summarise columns that only some runs have."""

from collections.abc import Iterator
from pathlib import Path

from edgefl.analysis.page.formatting import amount
from edgefl.analysis.runs.load import Runs

# table, column, how its rows are summarised, sentence
FURTHER = (
    ("rounds", "staleness_mean", "mean", "Devices' updates were on average {} models old (staleness)."),
    ("devices", "epsilon", "max", "The largest privacy loss epsilon of a device in a recorded round is {}."),
)


def further(runs: Runs, variant: str, seed: int | None = None) -> Iterator[tuple[str, str, str]]:
    """Yield heading, number and sentence for each additional column with values in a variant's runs or one seed."""
    some = runs.info[(runs.info["variant"] == variant) & (seed is None or runs.info["seed"] == seed)]
    for name, column, how, sentence in FURTHER:
        # a table of devices is large, so it is read only if it has the column
        if not any(column in _columns(Path(path, f"{name}.csv")) for path in some["path"]):
            continue
        table = getattr(runs, name)
        rows = table.loc[(table["variant"] == variant) & (seed is None or table["seed"] == seed), column]
        if rows.notna().any():
            number = amount(getattr(rows, how)())
            yield f"{column.replace('_mean', '')}, {how}", number, sentence.format(number)


def _columns(file: Path) -> list[str]:
    if not file.is_file():
        return []
    with file.open(encoding="utf-8") as lines:
        return lines.readline().strip().split(",")
