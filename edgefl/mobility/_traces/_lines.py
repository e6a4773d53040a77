"""Read a file's beginning, by which its format is detected, its lines, and movements given as waypoints."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from edgefl.config import foreign_files
from edgefl.mobility._traces._samples import WAYPOINTS, BadRow, Samples

HEAD = 1 << 16  # number of bytes in the beginning of a file
Waypoint = tuple[int, float, float, float]  # line of the file, t, x, y


class Head:
    """The beginning of a file.

    raw: the file's first bytes, unpacked. lines: its lines, without empty lines and comments. root: the root element
    of an XML file, '' for any other file.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        wide = raw[:2] in (b"\xff\xfe", b"\xfe\xff")
        text = raw.decode("utf-16" if wide else "utf-8-sig", errors="replace")
        whole = text[: text.rfind("\n")] if len(raw) == HEAD and "\n" in text else text
        stripped = (line.strip() for line in whole.splitlines())
        self.lines = [line for line in stripped if line and line[0] != "#"]
        self.is_xml = text.lstrip()[:1] == "<"
        element = re.search(r"<([^\s/>?!]+)", re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL))
        self.root = element[1].rpartition(":")[2] if self.is_xml and element else ""
        self.binary = not wide and b"\0" in raw


def numbered(path: Path) -> Iterator[tuple[int, str]]:
    """Yield number and text of each line that is not empty or a comment."""
    for number, line in enumerate(foreign_files.text_lines(path), start=1):
        line = line.strip()
        if line and line[0] != "#":
            yield number, line


def are_numbers(words: Sequence[str]) -> bool:
    """Return whether all words are numbers."""
    try:
        list(map(float, words))
    except ValueError:
        return False
    return True


def add_node(samples: Samples, id_: str, waypoints: Sequence[Waypoint], end_s: float) -> None:
    """Add the samples of a node, which stays at its last waypoint until end_s."""
    last = None
    line_end, _, x_end, y_end = waypoints[-1]
    for line, t, x, y in (*waypoints, (line_end, end_s, x_end, y_end)):
        if last == (t, x, y):
            continue  # skip a repeated waypoint, a pause of zero length
        last = t, x, y
        try:
            samples.add(line, "node", id_, t, x, y, lost=WAYPOINTS)
        except BadRow as bad:
            samples.skip(bad)
