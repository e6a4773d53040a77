"""Read tables from CSV or Parquet files row by row, with each row's line number."""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from edgefl.config import foreign_files
from edgefl.config.clock import epoch_s
from edgefl.errors import EdgeflError, about, quoted

READABLE = (".csv", ".csv.gz", ".parquet")


def rows(
    path: Path, separator: str | None = None, *, blanks: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of each row of a CSV file; empty rows are skipped.

    Args:
        separator: character between cells, or None for the most frequent of comma, semicolon and tab in line 1.
        blanks: whether spaces separate cells if the first line has no comma, semicolon or tab.

    Raises:
        EdgeflError: a line is not CSV.
    """
    text = foreign_files.text_lines(path)
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
    except csv.Error as error:
        raise EdgeflError(
            f"{path}:{lines.line_num}: is not a CSV line ({error}); check its quotes"
        ) from error


class Table:
    """A table, with its column names from the first row, and the other rows with their line numbers.

    Cells are strings separated by commas, semicolons or tabs, or a Parquet table's values; line 1 names the columns.

    Args:
        place: the file's key in the scenario.

    Raises:
        EdgeflError: the file cannot be read, or a row has too few or too many cells; also raised while rows are read.
    """

    def __init__(self, path: Path, *place: str) -> None:
        self._path, self._place = path, place
        self.rows = self._of_parquet() if path.suffix == ".parquet" else self._of_csv()
        _, names = next(self.rows, (1, ()))
        self.names = [str(name).strip() for name in names]

    def error(self, line: int, message: str) -> EdgeflError:
        """Make an error about a line of the table, with the file's path."""
        return EdgeflError(f"{self._path}:{line}: {message}", self._place)

    def column(self, wanted: Sequence[str], *, exact: bool = False, named: str = "") -> int:
        """Return the index of the only column that has one of the wanted names.

        Args:
            wanted: accepted names of the column, in lower case; with `exact`, spelled as in the table.
            named: what the error calls the column, by default its accepted names.

        Raises:
            EdgeflError: no column or several columns have such a name; the message lists the table's columns.
        """
        found = [at for at, name in enumerate(self.names) if (name if exact else name.lower()) in wanted]
        if len(found) != 1:
            many = f"{len(found)} columns" if found else "no column"
            known = ", ".join(map(quoted, self.names[:20])) or "none"
            named = named or " or ".join(map(quoted, wanted))
            raise self.error(1, f"has {many} {named}; its columns: {known}")
        return found[0]

    def _of_csv(self) -> Iterator[tuple[int, Sequence[Any]]]:
        with foreign_files.reading(self._path, *self._place), about(*self._place):
            columns = 0
            for line, cells in rows(self._path):
                columns = columns or len(cells)
                if len(cells) == columns:
                    yield line, cells
                elif any(map(str.strip, cells)):
                    raise self.error(line, miscounted(len(cells), columns))

    def _of_parquet(self) -> Iterator[tuple[int, Sequence[Any]]]:
        with foreign_files.reading(self._path, *self._place), about(*self._place):
            if not self._path.exists():
                raise FileNotFoundError(self._path)
            file = foreign_files.ForeignParquet(self._path)
            yield 1, file.names
            yield from enumerate(file.rows(file.names), start=2)


def miscounted(cells: int, columns: int) -> str:
    """Return the message about a line that has too few or too many cells."""
    remedy = "complete the line"
    if cells > columns:
        remedy = "remove cells; if numbers have decimal commas, write points, as in 1.5"
    return f"{cells} cells in a table of {columns} columns; {remedy}"


def decimal_comma(value: Any) -> str:
    """Return the end of a message about a cell that is no number: a remedy if it has a decimal comma, or ''."""
    if re.fullmatch(r"\s*[-+]?\d*,\d+([eE][-+]?\d+)?\s*", str(value)) is None:
        return ""
    return f"; if its comma is a decimal comma, write a point: {str(value).strip().replace(',', '.')}"


def number(value: Any) -> float | None:
    """Convert a cell to a number; return None if the cell does not contain a finite number."""
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if math.isfinite(found) and not isinstance(value, bool) else None


def seconds(value: Any) -> float | None:
    """Convert a number or an ISO 8601 date (UTC if it names no zone) in a cell to seconds; None for other cells."""
    found = number(value)
    if found is not None:
        return found
    try:
        return epoch_s(str(value))
    except (ValueError, OverflowError, OSError):
        return None
