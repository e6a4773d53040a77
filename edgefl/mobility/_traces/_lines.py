"""Read lines of text, and movements that are given as waypoints."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from edgefl.config import foreign_files
from edgefl.mobility._traces._samples import WAYPOINTS, BadRow, Samples

Waypoint = tuple[int, float, float, float]  # line of the file, t, x, y


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
