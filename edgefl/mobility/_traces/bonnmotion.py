"""Read BonnMotion's movement files, in which a node's line has t, x, y (or t, x, y, z) of each of its waypoints.

Source: https://sys.cs.uos.de/bonnmotion/doc/README.pdf, "BonnMotion native trace format"
"""

from pathlib import Path

from edgefl.mobility._traces._lines import Head, Waypoint, add_node, are_numbers, numbered
from edgefl.mobility._traces._samples import BadRow, Samples


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is a BonnMotion movement file."""
    words = [line.split() for line in head.lines[:3]]
    if not words or not all(map(are_numbers, words)) or _is_one(words):
        return False
    return all(float(each[0]) == 0 for each in words) and _size(words[0]) > 0


def _is_one(words: list[list[str]]) -> bool:
    return len(words) > 1 and len(words[0]) in (6, 8) and all(len(each) == 4 for each in words[1:])


def _size(words: list[str]) -> int:
    """Return how many numbers each waypoint of a line has, 3 or 4; 0 if times increase with neither number."""
    for size in (3, 4):
        times = [float(word) for word in words[::size]]
        if len(words) % size == 0 and times == sorted(times):
            return size
    return 0


def read(path: Path, samples: Samples) -> None:
    """Add the samples of a BonnMotion file; all nodes are present until the file's latest waypoint."""
    samples.in_degrees(False)
    nodes: list[list[Waypoint]] = []
    for line, text in numbered(path):
        words = text.split()
        nodes.append([])
        try:
            if not are_numbers(words):
                raise samples.bad_row(line, "holds a word that is not a number; write t x y of each waypoint")
            size = _size(words)
            if not size:
                raise samples.bad_row(line, f"{len(words)} numbers are not waypoints t x y with increasing t")
            for at in range(0, len(words), size):
                t, x, y = (
                    samples.number(line, name, words[at + place], "write a number")
                    for place, name in enumerate("txy")
                )
                nodes[-1].append((line, t, x, y))
        except BadRow as bad:
            samples.skip(bad)
    end_s = max((node[-1][1] for node in nodes if node), default=0.0)
    for number, node in enumerate(nodes):
        if node:
            add_node(samples, str(number), node, end_s)
