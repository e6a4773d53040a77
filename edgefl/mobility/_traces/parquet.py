"""Read Parquet tables, with the same columns as in `table`; pyarrow is required."""

from pathlib import Path
from typing import Any

from edgefl.config import foreign_files
from edgefl.mobility._traces._lines import Head
from edgefl.mobility._traces._samples import Samples
from edgefl.mobility._traces.table import Columns


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is a Parquet table."""
    return head.raw[:4] == b"PAR1"


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a Parquet table, batch by batch.

    Raises:
        EdgeflError: pyarrow is not installed.
        OSError: the file is not a Parquet table.
    """
    table = foreign_files.ForeignParquet(path)
    columns = Columns.of(table.names, samples)
    cells: list[Any] = [None] * len(table.names)
    for line, values in enumerate(table.rows([table.names[at] for at in columns.read]), start=2):
        for at, value in zip(columns.read, values, strict=True):
            cells[at] = value
        columns.add(line, cells)
