"""Reading recorded paths as streams: CSV tables and SUMO's floating-car data."""

import csv
import gzip
import math
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from xml.parsers import expat

from edgefl.errors import EdgeflError

COLUMNS = ("t", "id", "x", "y")
READABLE = (".csv", ".csv.gz", ".xml", ".xml.gz")
# what SUMO writes into the header of a file with degrees in place of metres
_DEGREES = 'fcd-output.geo value="true"'


class Samples:
    """The recorded samples of a trace, by device.

    Args:
        keep: number of ids whose samples are kept, the first ones; later ids are only counted.
    """

    def __init__(self, path: Path, keep: int) -> None:
        self.ids: list[str] = []  # in order of first appearance: the place is the device's number
        self.rows: list[array[float]] = []  # per device kept: t, x, y, t, x, y, ...
        self._path = path
        self._keep = keep
        self._numbers: dict[tuple[str, str], int] = {}

    def add(self, line: int, kind: str, id_: str, t: float, x: float, y: float) -> None:
        """Add a sample of a device, later than those before it. The same id in two kinds is two devices."""
        number = self._numbers.setdefault((kind, id_), len(self.ids))
        if number == len(self.ids):
            self.ids.append(id_)
            if number < self._keep:
                self.rows.append(array("d"))
        if number >= self._keep:
            return
        row = self.rows[number]
        if row and t <= row[-3]:
            what = "twice" if t == row[-3] else f"after {row[-3]:g} s"
            raise self.error(
                line, f"'{id_}' is at {t:g} s {what}; sort its samples by time and keep one for each time"
            )
        row.extend((t, x, y))

    def number(self, line: int, name: str, text: str | None, remedy: str) -> float:
        """Return the finite number in a cell.

        Raises:
            EdgeflError: names the line and the remedy.
        """
        try:
            value = float(text)  # type: ignore[arg-type]  # None is an error like any other
        except (TypeError, ValueError):
            value = math.nan
        if not math.isfinite(value):
            wrong = "is missing" if text is None else f"holds '{text}', not a number"
            raise self.error(line, f"{name} {wrong}; {remedy}")
        return value

    def error(self, line: int, message: str) -> EdgeflError:
        return EdgeflError(f"{self._path}:{line}: {message}")


def read(path: Path, kinds: Collection[str], keep: int) -> Samples:
    """Read the samples of a file.

    Args:
        path: one of READABLE, told by its name.
        kinds: elements of SUMO's file that are devices: vehicle, person, container.
        keep: number of ids whose samples are kept, the first ones; later ids are only counted.

    Raises:
        EdgeflError: the file cannot be read, or a line of it; names file, line and remedy.
    """
    samples = Samples(path, keep)
    with _reading(path):
        if ".csv" in path.suffixes:
            _read_csv(path, samples)
        else:
            _read_fcd(path, samples, kinds)
    if not samples.ids:
        what = "sample" if ".csv" in path.suffixes else " or ".join(kinds)
        raise EdgeflError(f"{path}: no {what} in it; a trace needs at least one")
    return samples


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise EdgeflError(
            f"{path}: no such file in {Path.cwd()}; a relative path begins in the folder where edgefl runs"
        ) from error
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise EdgeflError(f"{path}: cannot be read ({error}); check the file") from error


def _open(path: Path) -> IO[bytes]:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _read_csv(path: Path, samples: Samples) -> None:
    opener = gzip.open if path.suffix == ".gz" else open
    # utf-8-sig: spreadsheets put a byte-order mark in front
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        lines = csv.reader(file)
        try:
            header = [name.strip() for name in next(lines, [])]
            for name in COLUMNS:
                if header.count(name) != 1:
                    raise samples.error(
                        1,
                        f"column '{name}' is there {header.count(name)} times; the first line names the columns "
                        f"{','.join(COLUMNS)} (seconds and metres), separated by commas",
                    )
            t, id_, x, y = (header.index(name) for name in COLUMNS)
            for cells in lines:
                if not cells:
                    continue
                line = lines.line_num
                if len(cells) != len(header):
                    raise samples.error(
                        line, f"{len(cells)} cells in a table of {len(header)} columns; complete the line"
                    )
                name = cells[id_].strip()
                if not name:
                    raise samples.error(line, "id is empty; name the device")
                time_s, x_m, y_m = (
                    samples.number(line, column, cells[at], "write a number, 12.5 for example")
                    for column, at in (("t", t), ("x", x), ("y", y))
                )
                samples.add(line, "row", name, time_s, x_m, y_m)
        except csv.Error as error:
            raise samples.error(lines.line_num, f"not a CSV line ({error}); check its quotes") from error


def _read_fcd(path: Path, samples: Samples, kinds: Collection[str]) -> None:
    """Read floating-car data; with expat, which unlike iterparse keeps no element and knows line numbers."""
    parser = expat.ParserCreate()
    reader = _FcdReader(samples, kinds, parser)
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CommentHandler = reader.comment
    with _open(path) as file:
        try:
            parser.ParseFile(file)
        except expat.ExpatError as error:
            raise samples.error(
                error.lineno,
                f"not well-formed XML ({expat.ErrorString(error.code)}); perhaps the file is cut off",
            ) from error


class _FcdReader:
    """Handlers for `<fcd-export> <timestep time> <vehicle id x y .../>`; elements of other kinds are skipped."""

    def __init__(self, samples: Samples, kinds: Collection[str], parser: expat.XMLParserType) -> None:
        self._samples = samples
        self._kinds = kinds
        self._parser = parser
        self._path: list[str] = []
        self._time_s = -math.inf

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        if not self._path and name != "fcd-export":
            raise self._samples.error(
                line, f"<{name}> is not SUMO's floating-car data; write it with `sumo --fcd-output FILE`"
            )
        self._path.append(name)
        if name == "timestep":
            before_s = self._time_s
            self._time_s = self._samples.number(
                line, "<timestep> time", attributes.get("time"), "run SUMO without --human-readable-time"
            )
            if self._time_s <= before_s:
                raise self._samples.error(
                    line, f"<timestep> {self._time_s:g} s after {before_s:g} s; sort timesteps by time"
                )
        elif name in self._kinds:
            self._device(line, name, attributes)

    def _device(self, line: int, kind: str, attributes: Mapping[str, str]) -> None:
        if self._path[-2] != "timestep":
            raise self._samples.error(line, f"<{kind}> outside of a <timestep>; put it into one")
        id_ = attributes.get("id")
        if not id_:
            raise self._samples.error(line, f"<{kind}> has no id; name the device")
        x_m, y_m = (
            self._samples.number(
                line,
                f"<{kind} id='{id_}'> {axis}",
                attributes.get(axis),
                "keep x and y in --fcd-output.attributes",
            )
            for axis in ("x", "y")
        )
        self._samples.add(line, kind, id_, self._time_s, x_m, y_m)

    def end(self, name: str) -> None:
        self._path.pop()

    def comment(self, text: str) -> None:
        if _DEGREES in text:
            raise self._samples.error(
                self._parser.CurrentLineNumber,
                "x and y are degrees; run SUMO without --fcd-output.geo",
            )
