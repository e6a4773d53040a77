"""Read recorded paths as streams: tables, and SUMO's floating-car data."""

import math
from collections.abc import Collection, Mapping
from pathlib import Path
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError
from edgefl.mobility._trace_samples import Samples
from edgefl.mobility._trace_tables import read_csv, read_parquet

READABLE = (".csv", ".csv.gz", ".xml", ".xml.gz", ".parquet")
DEEPEST = 100  # levels of nesting
# SUMO's header of a file with degrees instead of metres
_DEGREES = 'fcd-output.geo value="true"'


def read(path: Path, kinds: Collection[str], keep: int, degrees: bool = False) -> Samples:
    """Read the samples of a file.

    Args:
        path: a file with a suffix in READABLE.
        kinds: elements of SUMO's file that are devices: vehicle, person, container.
        keep: number of ids whose samples are kept; later ids are only counted.
        degrees: whether x and y are longitude and latitude.

    Raises:
        EdgeflError: the file or a line of it cannot be read; names file, line and remedy.
    """
    samples = Samples(path, keep, degrees)
    with foreign_files.reading(path):
        if path.suffix == ".parquet":
            read_parquet(path, samples, kinds)
        elif ".csv" in path.suffixes:
            read_csv(path, samples, kinds)
        else:
            _read_fcd(path, samples, kinds)
    if not samples.ids:
        what = " or ".join(kinds) if ".xml" in path.suffixes else "sample"
        raise EdgeflError(f"{path}: has no {what}; a trace needs at least one")
    return samples


def _read_fcd(path: Path, samples: Samples, kinds: Collection[str]) -> None:
    """Read floating-car data with expat, which unlike iterparse keeps no elements and knows line numbers."""
    parser = expat.ParserCreate()
    reader = _FcdReader(samples, kinds, parser)
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CommentHandler = reader.comment
    with foreign_files.opened(path) as file:
        try:
            for _ in foreign_files.parse_xml(parser, file):
                pass
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
        if len(self._path) > DEEPEST:
            raise self._samples.error(line, f"<{name}> is nested in {DEEPEST} others; check the file")
        if name == "timestep":
            before_s = self._time_s
            self._time_s = self._samples.number(
                line, "<timestep> time", attributes.get("time"), "run SUMO without --human-readable-time"
            )
            if self._time_s <= before_s:
                raise self._samples.error(
                    line, f"<timestep> {self._time_s:g} s follows {before_s:g} s; sort timesteps by time"
                )
        elif name in self._kinds:
            self._device(line, name, attributes)

    def _device(self, line: int, kind: str, attributes: Mapping[str, str]) -> None:
        if self._path[-2] != "timestep":
            raise self._samples.error(line, f"<{kind}> is outside a <timestep>; put it into one")
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
        if _DEGREES in text and not self._samples.degrees:
            raise self._samples.error(
                self._parser.CurrentLineNumber,
                "x and y are degrees; set geo: true (and the scenario's origin_lon_lat), or run SUMO without"
                " --fcd-output.geo",
            )
