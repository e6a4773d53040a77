"""Read ONE's external movement: a line with the bounds of times and places, then lines of time, id, x and y.

Source: https://github.com/akeranen/the-one, src/input/ExternalMovementReader.java
"""

import re
from pathlib import Path

from edgefl.mobility._traces._lines import Head, are_numbers, numbered
from edgefl.mobility._traces._samples import WAYPOINTS, BadRow, Samples

_EVENT = re.compile(r"[\d.]+\s+(C|S|DE|DR|A|R|CONN)\s")  # StandardEventsReader.java


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is an external movement or a list of contacts of ONE."""
    words = [line.split() for line in head.lines[:3]]
    if not words:
        return False
    samples = len(words) > 1 and all(len(each) == 4 for each in words[1:])
    return _EVENT.match(head.lines[0]) is not None or (
        len(words[0]) in (6, 8) and are_numbers(words[0]) and samples
    )


def read(path: Path, samples: Samples) -> None:
    """Add the samples of an external movement of ONE."""
    samples.in_degrees(False)
    bounds = True
    for line, text in numbered(path):
        if _EVENT.match(text):
            raise samples.error(
                line, "is a list of ONE's contacts and messages, without positions; give an external movement"
            )
        if bounds:
            bounds = False
            continue
        words = text.split()
        try:
            if len(words) != 4:
                raise samples.bad_row(line, f"{len(words)} words; write time, id, x and y")
            t, x, y = (
                samples.number(line, name, words[at], "write a number")
                for name, at in (("time", 0), ("x", 2), ("y", 3))
            )
            samples.add(line, "node", words[1], t, x, y, lost=WAYPOINTS)
        except BadRow as bad:
            samples.skip(bad)
