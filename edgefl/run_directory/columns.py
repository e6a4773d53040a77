"""The meaning of every column in a run's tables, from columns.yaml, for `edgefl describe` and the reference page."""

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import yaml


class TableMeaning(NamedTuple):
    """The meaning of a table's rows, and of each of its columns by name."""

    rows: str
    columns: dict[str, str]


@cache
def meanings() -> dict[str, TableMeaning]:
    """Return the meaning of each table of a run directory, by the name of the table's CSV file."""
    text = (files("edgefl.run_directory") / "columns.yaml").read_text(encoding="utf-8")
    return {name: TableMeaning(**of) for name, of in yaml.safe_load(text).items()}


def tables_with(column: str) -> dict[str, str]:
    """Return each table that may have a column, with the column's meaning there."""
    return {name: of.columns[column] for name, of in meanings().items() if column in of.columns}
