"""Write CSV as Python's csv module does, by row or, many times faster, by column."""

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
from pydantic_core import to_json

from edgefl.errors import EdgeflError
from edgefl.run_directory.files import writing
from edgefl.run_directory.score import ACCURACY, column_name

# Times are multiples of a slot plus compute times; rounding errors of their sums are far below a nanosecond.
TIME_DIGITS = 9
# In this range nine decimals without trailing zeros are the shortest text of the rounded float.
DECIMALS_TO_S = 1e6
# In this range `repr` writes no exponent.
PLAIN_FROM, PLAIN_TO = 1e-4, 1e16
NONE: Mapping[str, Any] = {}


class Table:
    """A CSV file with rows of one type.

    Args:
        grows: whether rows may have extra columns; the header is then written with the first rows.
        score: name of the accuracy columns.

    Attributes:
        rows: number of rows so far.
    """

    def __init__(self, path: Path, row_type: type, *, grows: bool = False, score: str = ACCURACY) -> None:
        self.path = path
        self.rows = 0
        self._score = score
        self._row_type = row_type
        self._names = [field.name for field in dataclasses.fields(row_type)]
        self._further: tuple[str, ...] | None = None
        self._unflushed = False
        self._gathered = _Gathered()
        with writing(path):
            self._file = path.open("w", newline="", encoding="utf-8")
        if not grows:
            self._head(())

    def write(self, row: Any, further: Mapping[str, Any] = NONE) -> None:
        """Append a row to a CSV table, with values of extra columns.

        Raises:
            EdgeflError: an extra column was not in the first rows.
        """
        names = self._further_columns(further)
        self.rows += 1
        self._put_gathered()
        cells = [cell(name, value) for name, value in vars(row).items()]
        self._put(",".join([*cells, *(cell(name, further.get(name)) for name in names)]) + "\n")

    def write_columns(self, further: Mapping[str, Sequence[Any]], columns: Mapping[str, Any]) -> None:
        """Append rows given by column: a list or array [rows], or one value for all rows.

        Args:
            columns: the rows by column. The caller must not change them, since a few rows are formatted only later.

        Raises:
            KeyError: the row type has no column of a given name.
            TypeError: a column without a default value is missing.
            EdgeflError: an extra column was not in the first rows.
        """
        all_further = {name: further.get(name) for name in self._further_columns(further)}
        block, rows = block_of(self._row_type, self._names, columns, all_further)
        self.rows += rows
        if not self._gathered.take(block, rows):
            self._put_gathered()
            self._put_block(block, rows)

    def flush(self) -> None:
        """Pass everything written so far to the operating system."""
        self._put_gathered()
        if self._unflushed:
            with writing(self.path):
                self._file.flush()
            self._unflushed = False

    def close(self) -> None:
        """Write a CSV table's remaining rows; for an empty table, write the header."""
        if self._file.closed:
            return
        with writing(self.path):
            try:
                if self._further is None:
                    self._head(())
                self._put_gathered()
            finally:
                self._file.close()

    def _further_columns(self, further: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names of the table's extra columns, fixed by its first rows."""
        if self._further is None:
            self._head(tuple(further))
        assert self._further is not None
        refuse_late(self.path, further, self._further)
        return self._further

    def _head(self, further: tuple[str, ...]) -> None:
        if twice := set(further) & set(self._names):
            raise EdgeflError(f"{self.path}: already has a column {min(twice)}; choose another name")
        self._further = further
        self._put(",".join(map(_quoted, self._header())) + "\n")

    def _header(self) -> list[str]:
        assert self._further is not None
        return [column_name(name, self._score) for name in (*self._names, *self._further)]

    def _put_gathered(self) -> None:
        self._put_block(*self._gathered.give())

    def _put_block(self, block: Mapping[str, Any], rows: int) -> None:
        if not rows:
            return
        cells_of: list[str | list[str]] = []
        before: Any = None
        for name, values in block.items():
            # an activity begins when the previous one ends, so adjacent columns of times are often equal
            timed = values if isinstance(values, list) and name.endswith("_s") else None
            same = timed is not None and timed == before
            cells_of.append(cells_of[-1] if same else column(name, values))
            before = timed
        lines = zip(
            *(repeat(cells, rows) if isinstance(cells, str) else cells for cells in cells_of), strict=True
        )
        self._put("\n".join(map(",".join, lines)) + "\n")

    def _put(self, text: str) -> None:
        self._unflushed = True
        with writing(self.path):
            self._file.write(text)


def is_column(values: Any) -> bool:
    """Return whether values have one entry per row, rather than a single value for all rows."""
    return isinstance(values, list | tuple | np.ndarray)


def block_of(
    row_type: type, names: Iterable[str], columns: Mapping[str, Any], further: dict[str, Any]
) -> tuple[dict[str, Any], int]:
    """Return all columns of rows given by column, including defaults and extra columns, and the number of rows."""
    if unknown := columns.keys() - names:
        raise KeyError(f"{row_type.__name__} has no {', '.join(sorted(unknown))}")
    block = vars(row_type(**columns)) | further
    lengths = {len(values) for values in block.values() if is_column(values)}
    if len(lengths) > 1:
        raise ValueError(f"columns of {row_type.__name__} differ in length: {sorted(lengths)} rows")
    return block, lengths.pop() if lengths else 1


def refuse_late(path: Path, further: Iterable[str], known: Collection[str]) -> None:
    """Raise if extra columns were not in a table's first rows."""
    late = [name for name in further if name not in known]
    if late:
        raise EdgeflError(
            f"{path}: column {late[0]} is missing in the run's first round: write it in every "
            "round, with None where it has no value"
        )


def cell(name: str, value: Any) -> str:
    """Format a single value for a CSV table."""
    if value is None:
        return ""
    if name.endswith("_s"):
        value = round(value, TIME_DIGITS)
    return _quoted(str(value)) if isinstance(value, str) else str(value)


def column(name: str, values: Any) -> str | list[str]:
    """Format a column for a CSV table, as a string per row, or as a single string for a single value for all rows."""
    timed = name.endswith("_s")
    if isinstance(values, np.ndarray):
        values, timed = (values.round(TIME_DIGITS) if timed else values).tolist(), False
    elif not is_column(values):
        return cell(name, values)
    return _texts(values, timed)


def _texts(values: Sequence[Any], timed: bool) -> list[str]:
    kinds = set(map(type, values))
    if len(kinds) == 1:
        kind = kinds.pop()
        # 0.0 equals -0.0, but is written differently
        if values[0] and values.count(values[0]) == len(values):
            return [cell("_s" if timed else "", values[0])] * len(values)
        if kind is float:
            return _rounded_floats(values) if timed else _floats(values)
        if kind is int:
            return list(map(str, values))
        if kind is str:
            return list(map(_quoted, values))
        if kind is type(None):
            return [""] * len(values)
    elif len(kinds) == 2 and type(None) in kinds:
        texts = iter(_texts([value for value in values if value is not None], timed))
        return ["" if value is None else next(texts) for value in values]
    name = "_s" if timed else ""
    return [cell(name, value) for value in values]


def _rounded_floats(values: Sequence[float]) -> list[str]:
    """Return `repr(round(value, TIME_DIGITS))` of each value."""
    if not (min(values) >= PLAIN_FROM and max(values) < DECIMALS_TO_S):
        return _floats([round(value, TIME_DIGITS) for value in values])
    decimals = (f"%.{TIME_DIGITS}f " * len(values) % tuple(values)).split()
    short: Iterable[str] = (text.rstrip("0") for text in decimals)
    return [text + "0" if text[-1] == "." else text for text in short]


def _floats(values: Sequence[float]) -> list[str]:
    """Return the `repr` of each value; JSON's encoder finds the digits fifteen times as fast as `repr` does."""
    least, most = min(values), max(values)
    if not (least > -PLAIN_TO and most < PLAIN_TO and math.isfinite(sum(values))):
        return list(map(repr, values))
    together = to_json(list(values))[1:-1].decode()
    texts = together.split(",")
    if "e" not in together and "0.0000" not in together:
        return texts
    return [_as_repr(text) if "e" in text or "0.0000" in text[:7] else text for text in texts]


def _as_repr(text: str) -> str:
    """Rewrite a number's text between -PLAIN_FROM and PLAIN_FROM as Python does: `1.2e-5` becomes `1.2e-05`."""
    if text[0] == "-":
        return "-" + _as_repr(text[1:])
    mantissa, _, exponent = text.partition("e-")
    if exponent:
        return f"{mantissa}e-{int(exponent):02d}"
    if not text.startswith("0.0000"):  # such as 10.00001, which Python also writes without an exponent
        return text
    digits = text[2:].lstrip("0")
    power = len(text) - 1 - len(digits)
    return f"{digits[0]}{'.' if digits[1:] else ''}{digits[1:]}e-{power:02d}"


def _quoted(text: str) -> str:
    if "," in text or '"' in text or "\n" in text or "\r" in text:
        return '"' + text.replace('"', '""') + '"'
    return text


# Maximum rows of a block that is gathered, and number of gathered rows at which they are written (100 KB)
_SMALL, _MOST = 100, 500


class _Gathered:
    """Small blocks of a table's rows, such as simultaneous handovers, gathered because many writes are slow."""

    def __init__(self) -> None:
        self._blocks: list[tuple[Mapping[str, Any], int]] = []
        self._rows = 0
        self._kinds: list[tuple[str, str]] = []

    def take(self, block: Mapping[str, Any], rows: int) -> bool:
        """Gather a block of rows; return False if its size or types require the caller to write it separately.

        Args:
            block: name -> array [rows], which the caller must not change afterwards, or one value for all rows.
        """
        if rows > _SMALL or self._rows >= _MOST:
            return False
        kinds = [
            (name, values.dtype.kind) for name, values in block.items() if isinstance(values, np.ndarray)
        ]
        if any(isinstance(values, list | tuple) for values in block.values()) or not kinds:
            return False
        if self._blocks and kinds != self._kinds:
            return False
        self._blocks.append((block, rows))
        self._kinds = kinds
        self._rows += rows
        return True

    def give(self) -> tuple[dict[str, Any], int]:
        """Return the gathered rows as one block, with their number, and clear them.

        The joined block is written like the separate blocks: one value for all rows becomes a list, whose floats are
        rounded as in a separate block.
        """
        blocks, rows, self._blocks, self._rows = self._blocks, self._rows, [], 0
        if not rows:
            return {}, 0
        arrays = {name for name, _ in self._kinds}
        return {
            name: np.concatenate([block[name] for block, _ in blocks])
            if name in arrays
            else _column([(block[name], many) for block, many in blocks])
            for name in blocks[0][0]
        }, rows


def _column(values: list[tuple[Any, int]]) -> Any:
    first = values[0][0]
    if all(value is first for value, _ in values):
        return first
    return [value for value, many in values for _ in range(many)]
