"""Read SUMO's floating-car data, `sumo --fcd-output FILE`, in XML."""

import math
from collections.abc import Mapping
from pathlib import Path
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.mobility._traces._lines import Head
from edgefl.mobility._traces._samples import LISTED, BadRow, Samples

DEEPEST = 100  # maximum number of levels of nesting
# SUMO's header of a file with degrees instead of metres
_DEGREES = 'fcd-output.geo value="true"'


def begins(head: Head) -> bool:
    """Return whether a file with this beginning contains SUMO's floating-car data."""
    return head.root == "fcd-export"


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a file of floating-car data."""
    samples.in_degrees(bool(samples.wanted.degrees))
    parser = expat.ParserCreate()
    reader = _FcdReader(samples, parser)
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CommentHandler = reader.comment
    for _ in foreign_files.parse_xml(parser, path):
        pass


class _FcdReader:
    """Handlers for `<fcd-export> <timestep time> <vehicle id x y .../>`; elements of other kinds are skipped."""

    def __init__(self, samples: Samples, parser: expat.XMLParserType) -> None:
        self._samples = samples
        self._kinds = frozenset(samples.wanted.kinds)
        self._parser = parser
        self._path: list[str] = []
        self._time_s = -math.inf

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self._path and name != "fcd-export":
            raise self._samples.error(
                self._parser.CurrentLineNumber,
                f"<{name}> is neither GPX nor SUMO's floating-car data; write it with `sumo --fcd-output FILE`",
            )
        self._path.append(name)
        if len(self._path) > DEEPEST:
            line = self._parser.CurrentLineNumber
            raise self._samples.error(line, f"<{name}> is nested in {DEEPEST} others; check the file")
        if name in self._kinds:
            try:
                self._device(self._parser.CurrentLineNumber, name, attributes)
            except BadRow as bad:
                self._samples.skip(bad)
        elif name == "timestep":
            self._step(self._parser.CurrentLineNumber, attributes.get("time"))

    def _step(self, line: int, text: str | None) -> None:
        before_s = self._time_s
        self._time_s = self._samples.number(
            line, "<timestep> time", text, "run SUMO without --human-readable-time"
        )
        if self._time_s <= before_s:
            raise self._samples.error(
                line, f"<timestep> {self._time_s:g} s follows {before_s:g} s; sort timesteps by time"
            )
        self._samples.step(self._time_s)

    def _device(self, line: int, kind: str, attributes: Mapping[str, str]) -> None:
        samples = self._samples
        if self._path[-2] != "timestep":
            raise samples.error(line, f"<{kind}> is outside a <timestep>; put it into one")
        id_ = attributes.get("id")
        if not id_:
            raise samples.bad_row(line, f"<{kind}> has no id; name the device")
        try:
            x, y = float(attributes["x"]), float(attributes["y"])
        except (KeyError, ValueError):
            x = y = math.nan
        if not math.isfinite(x + y):
            what, remedy = f"<{kind} id='{id_}'>", "keep x and y in --fcd-output.attributes"
            x, y = (
                samples.number(line, f"{what} {axis}", attributes.get(axis), remedy) for axis in ("x", "y")
            )
        samples.add(line, kind, id_, self._time_s, x, y, lost=LISTED, type_=attributes.get("type", ""))

    def end(self, name: str) -> None:
        self._path.pop()

    def comment(self, text: str) -> None:
        if _DEGREES in text and not self._samples.degrees:
            raise self._samples.error(
                self._parser.CurrentLineNumber,
                "x and y are degrees; set geo: true (and the scenario's origin_lon_lat), or run SUMO without"
                " --fcd-output.geo",
            )
