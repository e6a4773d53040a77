"""Read recorded paths from tables: CSV and Parquet, with plain columns or those of SUMO."""

import csv
import gzip
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError
from edgefl.mobility._trace_samples import Samples

_WANTED = (
    "the first line names the columns t,id,x,y (seconds and metres), t,id,lon,lat (degrees) or those of SUMO,"
    " timestep_time,vehicle_id,vehicle_x,vehicle_y; separated by commas or semicolons"
)


class _Device(NamedTuple):
    """The cells of a row with the sample of a device: its id and its two coordinates."""

    kind: str
    id: int
    x: int
    y: int


class _Rows:
    """Convert the rows of a table to samples.

    SUMO's tables have the columns of every kind in every row, and fill those of one kind; a row without any id is a
    time step without devices. The columns of a plain table are t (or time), id and x, y or lon, lat.
    """

    def __init__(self, names: Sequence[str], samples: Samples, kinds: Collection[str]) -> None:
        self._names = names
        self._samples = samples
        self.of_sumo = "timestep_time" in names
        if self.of_sumo:
            tables = [kind for kind in kinds if f"{kind}_id" in names] or [next(iter(kinds))]
            self._t = self._place("timestep_time")
            self._devices = [
                _Device(kind, *(self._place(f"{kind}_{what}") for what in ("id", "x", "y")))
                for kind in tables
            ]
            return
        x, y = "x", "y"
        if {"lon", "lat"} & set(names) and (samples.degrees or not {"x", "y"} & set(names)):
            samples.degrees = True
            x, y = "lon", "lat"
        self._t = self._place("time" if "t" not in names and "time" in names else "t")
        self._devices = [_Device("row", self._place("id"), self._place(x), self._place(y))]

    @property
    def columns(self) -> list[int]:
        """The cells of a row to read, in order."""
        return sorted({self._t, *(place for device in self._devices for place in device[1:])})

    def add(self, line: int, cells: Sequence[Any]) -> None:
        """Add the samples of a row; cells are texts, or values in typed tables."""
        for kind, id_at, x_at, y_at in self._devices:
            id_ = "" if cells[id_at] is None else str(cells[id_at]).strip()
            if not id_:
                if self.of_sumo:
                    continue
                raise self._samples.error(line, "id is empty; name the device")
            time_s, x, y = (
                self._samples.number(line, self._names[at], cells[at], "write a number, 12.5 for example")
                for at in (self._t, x_at, y_at)
            )
            self._samples.add(line, kind, id_, time_s, x, y)

    def _place(self, name: str) -> int:
        if self._names.count(name) != 1:
            raise self._samples.error(1, f"column '{name}' occurs {self._names.count(name)} times; {_WANTED}")
        return self._names.index(name)


def read_csv(path: Path, samples: Samples, kinds: Collection[str]) -> None:
    """Read a CSV table, possibly compressed."""
    opener = gzip.open if path.suffix == ".gz" else open
    # utf-8-sig: spreadsheets write a byte-order mark
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        text = foreign_files.lines(file)
        head = next(text, "")
        separator = ";" if ";" in head and "," not in head else ","
        line = 1
        try:
            names = [name.strip() for name in next(csv.reader([head], delimiter=separator), [])]
            rows = _Rows(names, samples, kinds)
            lines = csv.reader(text, delimiter=separator)
            for cells in lines:
                line = 1 + lines.line_num
                if not cells:
                    continue
                if len(cells) != len(names):
                    raise samples.error(
                        line, f"{len(cells)} cells in a table of {len(names)} columns; complete the line"
                    )
                rows.add(line, cells)
        except csv.Error as error:
            raise samples.error(line, f"is not a CSV line ({error}); check its quotes") from error


def read_parquet(path: Path, samples: Samples, kinds: Collection[str]) -> None:
    """Read a Parquet table, batch by batch; this needs pyarrow.

    Raises:
        EdgeflError: pyarrow is not installed, or the file is not a Parquet table.
    """
    if not path.exists():
        raise FileNotFoundError(path)
    try:
        table = foreign_files.ForeignParquet(path)
        rows = _Rows(table.names, samples, kinds)
        cells: list[Any] = [None] * len(table.names)
        for line, values in enumerate(table.rows([table.names[at] for at in rows.columns]), start=2):
            for at, value in zip(rows.columns, values, strict=True):
                cells[at] = value
            rows.add(line, cells)
    except OSError as error:
        raise EdgeflError(f"{path}: cannot be read as Parquet ({error}); check the file") from error
