"""Read the rows of separated text, with their lines."""

import csv
import io
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from edgefl.config import foreign_files
from edgefl.mobility._traces._samples import Samples


def rows(path: Path, samples: Samples, separator: str | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield line and cells of each row that is not empty.

    Args:
        separator: None: that of the first line, the first of comma, semicolon, tab and blank in it.

    Raises:
        EdgeflError: a line is not CSV.
    """
    with foreign_files.opened(path) as file:
        # utf-8-sig: spreadsheets write a byte-order mark
        text = foreign_files.lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
        first = next(text, "")
        separator = separator or next((mark for mark in ",;\t " if mark in first.strip()), ",")
        lines = csv.reader(chain([first], text), delimiter=separator, skipinitialspace=separator == " ")
        try:
            for cells in lines:
                if cells:
                    yield lines.line_num, cells
        except csv.Error as error:
            raise samples.error(lines.line_num, f"is not a CSV line ({error}); check its quotes") from error
