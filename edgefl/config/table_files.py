"""Read tables, CSV or Parquet, row by row with the line of each."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError, about, quoted

READABLE = (".csv", ".csv.gz", ".parquet")
Place = tuple[str, ...]
Rows = Iterator[tuple[int, Sequence[Any]]]


def table(path: Path, place: Place) -> tuple[list[str], Rows]:
    """Return a table's first row, which should name its columns, and its other rows, each with its line.

    Cells are texts, or values in a Parquet table; its names count as line 1. CSV: separated by commas, semicolons or
    tabs.

    Args:
        place: the file's key in the scenario.

    Raises:
        EdgeflError: the file cannot be read, or a row has another number of cells; also while rows are read.
    """
    rows = _parquet(path, place) if path.suffix == ".parquet" else _csv(path, place)
    _, names = next(rows, (1, ()))
    return [str(name).strip() for name in names], rows


def error(path: Path, line: int, message: str, place: Place) -> EdgeflError:
    """Return an error about a line of a table."""
    return EdgeflError(f"{path}:{line}: {message}", place)


def number(value: Any) -> float | None:
    """Return a cell as a finite number, or None if it is none."""
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) and not isinstance(value, bool) else None


def seconds(value: Any) -> float | None:
    """Return a cell as seconds: a number, or a date by ISO 8601, in UTC without a zone; None if it is neither."""
    found = number(value)
    if found is not None:
        return found
    try:
        date = value if isinstance(value, datetime) else datetime.fromisoformat(str(value).strip())
        return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def column(
    path: Path, names: Sequence[str], wanted: Sequence[str], place: Place, *, exact: bool = False
) -> int:
    """Return the place of the one column with a wanted name.

    Args:
        wanted: names in lower case, or with `exact` as they are in the table.

    Raises:
        EdgeflError: names the columns that there are.
    """
    found = [at for at, name in enumerate(names) if (name if exact else name.lower()) in wanted]
    if len(found) != 1:
        many = f"{len(found)} columns" if found else "no column"
        known = ", ".join(map(quoted, names[:20])) or "none"
        raise error(path, 1, f"has {many} {' or '.join(map(quoted, wanted))}; its columns: {known}", place)
    return found[0]


def _csv(path: Path, place: Place) -> Rows:
    try:
        with foreign_files.reading(path, *place), foreign_files.opened(path) as raw:
            # utf-8-sig: spreadsheets write a byte-order mark
            text = foreign_files.lines(io.TextIOWrapper(raw, encoding="utf-8-sig", newline=""))
            head = next(text, "")
            separator = max(",;\t", key=head.count)
            columns = next(csv.reader([head], delimiter=separator), [])
            yield 1, columns
            lines = csv.reader(text, delimiter=separator)
            for cells in lines:
                if not cells:
                    continue
                line = 1 + lines.line_num
                if len(cells) != len(columns):
                    raise error(
                        path, line, f"{len(cells)} cells but {len(columns)} columns: make them equal", place
                    )
                yield line, cells
    except csv.Error as wrong:
        raise EdgeflError(f"{path}: cannot be read as CSV ({wrong}); check the file", place) from wrong


def _parquet(path: Path, place: Place) -> Rows:
    with foreign_files.reading(path, *place):
        if not path.exists():
            raise FileNotFoundError(path)
        with about(*place):
            file = foreign_files.ForeignParquet(path)
        yield 1, file.names
        yield from enumerate(file.rows(file.names), start=2)
