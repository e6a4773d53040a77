"""Write Parquet tables as folders of complete files, with some hundred thousand rows per file."""

import dataclasses
import types
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

import numpy as np

from edgefl.errors import EdgeflError
from edgefl.run_directory.files import draft_of, writing
from edgefl.run_directory.score import ACCURACY, column_name
from edgefl.run_directory.tables import TIME_DIGITS, block_of, is_column, refuse_late

if TYPE_CHECKING:
    import pyarrow

# Rows per file: small files compress badly; large files use memory, and lose more rows if a process is killed.
ROWS = 250_000
REMEDY = "needs the package pyarrow: pip install 'edgefl-cosim[parquet]', or set record.tables: csv"


def require() -> None:
    """Raise if the package that writes Parquet is missing.

    Raises:
        EdgeflError: the package is missing; the message names the command that installs it.
    """
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError as error:
        raise EdgeflError(REMEDY, ("record", "tables")) from error


class ParquetTable:
    """A folder of Parquet files for rows of one type, used like `Table`, but stored by column.

    If the process is killed, the rows gathered for the next file are lost; earlier files stay intact.
    """

    def __init__(self, path: Path, row_type: type, *, grows: bool = False, score: str = ACCURACY) -> None:
        require()
        self._score = score
        self.path = path
        self._row_type = row_type
        self._types = dict(_types(row_type))
        self._further: dict[str, type] | None = None if grows else {}
        self._blocks: list[dict[str, Any]] = []
        self.rows = self._rows = 0
        self._files = 0
        with writing(path):
            path.mkdir(exist_ok=True)
            for old in path.glob("*.parquet"):  # a resumed run writes its tables again
                old.unlink()

    def write(self, row: Any, further: Mapping[str, Any] = types.MappingProxyType({})) -> None:
        """Append a row to a Parquet table, with values of extra columns."""
        self.write_columns({name: [value] for name, value in further.items()}, vars(row))

    def write_columns(self, further: Mapping[str, Sequence[Any]], columns: Mapping[str, Any]) -> None:
        """Append many rows, given by column, as `Table.write_columns` does."""
        block, rows = block_of(self._row_type, self._types, columns, self._checked(further))
        self._blocks.append(
            {name: values if is_column(values) else [values] * rows for name, values in block.items()}
        )
        self.rows += rows
        self._rows += rows
        if self._rows >= ROWS:
            self._put()

    def flush(self) -> None:
        """Do nothing, since a file is written only when it is full."""

    def close(self) -> None:
        """Write a Parquet table's remaining rows; for an empty table, write a file without rows."""
        if self._blocks or not self._files:
            self._put()

    def _checked(self, further: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        if self._further is None:
            self._further = {name: _kind(values) for name, values in further.items()}
        refuse_late(self.path, further, self._further)
        return {name: further.get(name) for name in self._further}

    def _put(self) -> None:
        import pyarrow

        kinds = self._types | (self._further or {})
        arrays = {
            column_name(name, self._score): _array([block[name] for block in self._blocks], name, kind)
            for name, kind in kinds.items()
        }
        self._blocks, self._rows = [], 0
        file = self.path / f"{self._files:06d}.parquet"
        self._settle(file, pyarrow.table(arrays))
        self._files += 1

    @staticmethod
    def _settle(file: Path, table: "pyarrow.Table") -> None:
        import pyarrow.parquet

        with writing(file):
            pyarrow.parquet.write_table(table, draft_of(file), compression="zstd")
            draft_of(file).replace(file)


def _types(row_type: type) -> Iterator[tuple[str, type]]:
    hints = get_type_hints(row_type)
    for field in dataclasses.fields(row_type):
        kind = hints[field.name]
        yield field.name, next((k for k in get_args(kind) if k is not type(None)), kind)


def _kind(values: Sequence[Any]) -> type:
    return str if any(isinstance(value, str) for value in values) else float


def _array(blocks: Sequence[Sequence[Any]], name: str, kind: type) -> "pyarrow.ChunkedArray":
    import pyarrow

    arrow = {int: pyarrow.int64(), float: pyarrow.float64(), str: pyarrow.string()}[kind]
    arrays = []
    for block in blocks:
        values: Any = [None if value is None else str(value) for value in block] if kind is str else block
        if name.endswith("_s"):
            values = _rounded(values)
        arrays.append(pyarrow.array(values, arrow))
    array = pyarrow.chunked_array(arrays, arrow)
    return array.combine_chunks().dictionary_encode() if kind is str else array


def _rounded(values: Sequence[Any]) -> Sequence[Any]:
    """Round a column of times, in seconds, as the CSV tables do."""
    if isinstance(values, np.ndarray):
        return np.round(values, TIME_DIGITS)
    return [None if value is None else round(value, TIME_DIGITS) for value in values]
