"""Read GPX, the format of GPS receivers and sports apps; each file is one device, with any number of tracks.

Source: https://www.topografix.com/GPX/1/1/
"""

from collections.abc import Mapping
from pathlib import Path
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.mobility._traces._lines import Head
from edgefl.mobility._traces._samples import BadRow, Samples

LONGEST = 10  # maximum number of pieces in which the parser may deliver the text of a <time>


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is GPX."""
    return head.root == "gpx"


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a GPX file."""
    samples.in_degrees(True)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    reader = _GpxReader(samples, parser)
    parser.StartElementHandler = reader.begin
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    for _ in foreign_files.parse_xml(parser, path):
        pass


class _GpxReader:
    """Handlers for `<trkpt lat lon> <time>2026-01-05T07:30:00Z</time> </trkpt>`."""

    def __init__(self, samples: Samples, parser: expat.XMLParserType) -> None:
        self._samples, self._parser = samples, parser
        self._id = samples.name
        self._point: tuple[int, Mapping[str, str]] | None = None
        self._time: list[str] | None = None  # text of an open <time>, in the pieces that the parser delivers
        self._told: str | None = None

    def begin(self, name: str, attributes: Mapping[str, str]) -> None:
        name = name.rpartition(":")[2]
        if name == "trkpt":
            self._point, self._told = (self._parser.CurrentLineNumber, attributes), None
        elif name == "time" and self._point:
            self._time = []

    def text(self, text: str) -> None:
        if self._time is not None and len(self._time) < LONGEST:
            self._time.append(text)

    def end(self, name: str) -> None:
        name = name.rpartition(":")[2]
        if name == "time" and self._time is not None:
            self._told, self._time = "".join(self._time), None
        elif name == "trkpt" and self._point:
            (line, attributes), self._point = self._point, None
            try:
                self._add(line, attributes)
            except BadRow as bad:
                self._samples.skip(bad)

    def _add(self, line: int, attributes: Mapping[str, str]) -> None:
        samples = self._samples
        if self._told is None:
            raise samples.bad_row(line, "<trkpt> has no <time>; export a recorded track, not a planned route")
        time_s = samples.time_s(line, "<time>", self._told)
        lon, lat = (
            samples.number(line, f"<trkpt> {axis}", attributes.get(axis), "write degrees")
            for axis in ("lon", "lat")
        )
        samples.add(line, "track", self._id, time_s, lon, lat)
