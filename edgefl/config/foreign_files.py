"""Read untrusted files within bounded memory.

A kilobyte of gzip can expand to a megabyte of spaces; a table or an XML file can be one endless line or comment.
"""

import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from edgefl.config.scenario_files import WHERE
from edgefl.errors import EdgeflError

LONGEST_LINE = 10_000_000  # maximum characters of a table's line, and bytes of an XML tag or comment
LONGEST_WORD = 1_000  # maximum length of a string in a Parquet table, in characters
LARGEST_GROUP = 250_000_000  # maximum size of a Parquet table's row group, uncompressed, in bytes
PIECE = 1 << 16  # number of bytes read at a time
GZIP = b"\x1f\x8b"  # first bytes of a gzip file: RFC 1952, 2.3.1


@contextmanager
def reading(path: Path, *place: str) -> Iterator[None]:
    """Turn errors in reading a file into an EdgeflError with path and remedy; `place` is the file's key."""
    try:
        yield
    except FileNotFoundError as error:
        raise EdgeflError(f"{path}: no such file in {Path.cwd()}; {WHERE}", place) from error
    except UnicodeDecodeError as error:
        raise EdgeflError(f"{path}: cannot be read ({error}); save the file as UTF-8", place) from error
    except (OSError, EOFError, zlib.error, RecursionError) as error:
        raise EdgeflError(f"{path}: cannot be read ({error}); check the file", place) from error


def stamp(path: Path, *place: str) -> tuple[Path, int, int]:
    """Return values that change when a file's content changes: working directory, modification time, size.

    Raises:
        EdgeflError: the file does not exist.
    """
    with reading(path, *place):
        status = path.stat()
    return Path.cwd(), status.st_mtime_ns, status.st_size


def opened(path: Path) -> IO[bytes]:
    """Open a file for reading; decompress it if it begins like a gzip file, whatever its name."""
    file = path.open("rb")
    if file.read(len(GZIP)) != GZIP:
        file.seek(0)
        return file
    file.close()
    return gzip.open(path, "rb")  # type: ignore[return-value]


def whole(path: Path, most_bytes: int) -> bytes:
    """Read the whole content of a file, plain or compressed by gzip.

    Raises:
        OSError: the file cannot be read, or its content exceeds `most_bytes`.
    """
    with opened(path) as file:
        return up_to(file, most_bytes)


def up_to(file: IO[bytes], most_bytes: int) -> bytes:
    """Read the rest of an open file, at most `most_bytes`.

    Raises:
        OSError: the file cannot be read, or the rest exceeds `most_bytes`.
    """
    content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(f"holds more than {most_bytes // 1_000_000} MB")
    return content


def text_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, plain or compressed by gzip; `opened` and `lines` document the errors."""
    with opened(path) as file:
        # utf-8-sig, since spreadsheets write byte-order marks
        yield from lines(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))


def lines(file: IO[str]) -> Iterator[str]:
    """Yield the lines of an open text file, each at most LONGEST_LINE characters long.

    Raises:
        OSError: a line is longer than LONGEST_LINE.
    """
    number = 0
    while line := file.readline(LONGEST_LINE + 1):
        number += 1
        if len(line) > LONGEST_LINE:
            raise OSError(f"line {number} is longer than {LONGEST_LINE:,} characters")
        yield line


def parse_xml(parser: expat.XMLParserType, path: Path) -> Iterator[int]:
    """Feed an XML file to a parser piece by piece; yield the number of bytes fed so far, so that callers can stop.

    Unlike iterparse, expat keeps no elements in memory, and it reports line numbers.

    Raises:
        OSError: the file cannot be read, or names an unknown encoding, or a tag is longer than LONGEST_LINE bytes.
        EdgeflError: the file is not well-formed; the message names file and line.
    """
    given = 0
    with opened(path) as file:
        while piece := file.read(PIECE):
            given += len(piece)
            _parse(parser, path, piece, False)
            if given - parser.CurrentByteIndex > LONGEST_LINE:
                raise OSError(
                    f"line {parser.CurrentLineNumber}: longer than {LONGEST_LINE:,} bytes without an end"
                )
            yield given
    _parse(parser, path, b"", True)


def _parse(parser: expat.XMLParserType, path: Path, piece: bytes, last: bool) -> None:
    try:
        parser.Parse(piece, last)
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # a callback's error, not an unknown encoding
            raise
        raise OSError(f"{error}; save it as UTF-8") from error
    except expat.ExpatError as error:
        fault = f"not well-formed XML ({expat.ErrorString(error.code)}); perhaps the file is truncated"
        raise EdgeflError(f"{path}:{error.lineno}: {fault}") from error


class ForeignParquet:
    """A Parquet table, read batch by batch with pyarrow.

    Raises:
        EdgeflError: pyarrow is not installed.
        OSError: the file is not a Parquet table, or a column contains neither numbers nor short strings.
    """

    def __init__(self, path: Path) -> None:
        try:
            from pyarrow import ArrowException, parquet, types
        except ImportError as error:
            raise EdgeflError(
                f"{path}: Parquet needs pyarrow: pip install 'edgefl-cosim[parquet]'; or write CSV"
            ) from error
        self._failure = ArrowException
        with self._reading():
            schema = parquet.read_schema(path)
            # text columns stay dictionary-encoded, since a million rows may share one long text
            words = [
                each.name for each in schema if types.is_string(each.type) or types.is_large_string(each.type)
            ]
            self._file = parquet.ParquetFile(path, read_dictionary=words)
        self.names: list[str] = list(schema.names)
        self._nested = {each.name for each in schema if types.is_nested(each.type)}

    def rows(self, names: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """Yield the values of the columns with the given names, row by row."""
        if nested := self._nested & set(names):
            raise OSError(f"column {min(nested)} holds lists")
        self._check_sizes(names)
        with self._reading():
            for batch in self._file.iter_batches(columns=list(names)):
                yield from zip(*map(_values, batch.columns), strict=True)

    def _check_sizes(self, names: Sequence[str]) -> None:
        about = self._file.metadata
        for group in range(about.num_row_groups):
            columns = [about.row_group(group).column(at) for at in range(about.num_columns)]
            size = sum(each.total_uncompressed_size for each in columns if each.path_in_schema in names)
            if size > LARGEST_GROUP:
                raise OSError(
                    f"a row group holds {size / 1e6:,.0f} MB; write row groups of at most {LARGEST_GROUP // 10**6} MB"
                )

    @contextmanager
    def _reading(self) -> Iterator[None]:
        try:
            yield
        except self._failure as error:
            raise OSError(str(error)) from error


def _values(column: Any) -> list[Any]:
    """Return the values of a Parquet column; raise if a string is longer than LONGEST_WORD characters."""
    dictionary = getattr(column, "dictionary", None)
    if dictionary is not None and any(len(word) > LONGEST_WORD for word in dictionary.to_pylist() if word):
        raise OSError(f"a text is longer than {LONGEST_WORD} characters")
    values: list[Any] = column.to_pylist()
    return values
