"""Read tables, CSV or Parquet, row by row with the line of each."""

import csv
import io
import math
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from edgefl.config import foreign_files
from edgefl.config.clock import epoch_s
from edgefl.errors import EdgeflError, about, quoted

READABLE = (".csv", ".csv.gz", ".parquet")
Place = tuple[str, ...]
Rows = Iterator[tuple[int, Sequence[Any]]]


def rows(
    path: Path, separator: str | None = None, *, blanks: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of each row of a CSV file that is not empty.

    Args:
        separator: None: comma, semicolon or tab, the most frequent one in the first line.
        blanks: whether blanks separate cells if the first line has none of these.

    Raises:
        EdgeflError: a line is not CSV.
    """
    with foreign_files.opened(path) as file:
        # utf-8-sig: spreadsheets write a byte-order mark
        text = foreign_files.lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
        first = next(text, "")
        usual = max(",;\t", key=first.count)
        if blanks and usual not in first and " " in first.strip():
            usual = " "
        separator = separator or usual
        lines = csv.reader(chain([first], text), delimiter=separator, skipinitialspace=separator == " ")
        try:
            for cells in lines:
                if cells:
                    yield lines.line_num, cells
        except csv.Error as wrong:
            raise error(path, lines.line_num, f"is not a CSV line ({wrong}); check its quotes") from wrong


def table(path: Path, place: Place = ()) -> tuple[list[str], Rows]:
    """Return a table's first row, which should name its columns, and its other rows, each with its line.

    Cells are texts, or values in a Parquet table; its names count as line 1. CSV: separated by commas, semicolons or
    tabs.

    Args:
        place: the file's key in the scenario.

    Raises:
        EdgeflError: the file cannot be read, or a row has another number of cells; also while rows are read.
    """
    lines = _parquet(path, place) if path.suffix == ".parquet" else _csv(path, place)
    _, names = next(lines, (1, ()))
    return [str(name).strip() for name in names], lines


def error(path: Path, line: int, message: str, place: Place = ()) -> EdgeflError:
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
        return epoch_s(str(value))
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
    with foreign_files.reading(path, *place), about(*place):
        columns = 0
        for line, cells in rows(path):
            columns = columns or len(cells)
            if len(cells) == columns:
                yield line, cells
            elif any(map(str.strip, cells)):
                raise error(
                    path, line, f"{len(cells)} cells in a table of {columns} columns; complete the line"
                )


def _parquet(path: Path, place: Place) -> Rows:
    with foreign_files.reading(path, *place), about(*place):
        if not path.exists():
            raise FileNotFoundError(path)
        file = foreign_files.ForeignParquet(path)
        yield 1, file.names
        yield from enumerate(file.rows(file.names), start=2)
