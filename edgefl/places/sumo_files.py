"""Read the streets and the boundary of a network from map files of SUMO."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.parsers import expat

from edgefl.config import foreign_files
from edgefl.errors import EdgeflError, about, quoted
from edgefl.places.plane import look_like_degrees

LARGEST_FILE = 100_000_000  # bytes, unpacked
MOST_POINTS = 2_000_000  # maximum number of street corners; each takes some 100 bytes while a file is read
PLACE = ("sumo_net", "path")
Pair = tuple[float, float]


@dataclass(frozen=True)
class _Edge:
    """A street of a network, from junction to junction; `lanes` has the attributes of each lane."""

    attributes: Mapping[str, str]
    lanes: list[Mapping[str, str]]


def boundary(path: Path) -> tuple[Pair, Pair]:
    """Read the lower left and upper right corners of a network, m, from `convBoundary` of its `<location>`."""
    with _reading(path):
        locations = (each for name, each in _elements(path) if name == "location")
        found = next(locations, {}).get("convBoundary")
        if found is None:
            raise EdgeflError(
                f"{path}: has no <location convBoundary=...>; give a network made by netconvert or netgenerate"
            )
        x0, y0, x1, y1 = (float(text) for text in found.split(","))
        if not (math.isfinite(x0 + y0 + x1 + y1) and x0 < x1 and y0 < y1):
            raise EdgeflError(f"{path}: convBoundary {found} has no area")
        _in_metres(path, [(x0, y0), (x1, y1)])
    return (x0, y0), (x1, y1)


def edges(path: Path) -> list[tuple[_Edge, list[Pair]]]:
    """Read the streets of a network, and each street's corners in m, from junction to junction along its shape."""
    found: list[_Edge] = []
    junctions: dict[str, Pair] = {}
    points, within = 0, False
    with _reading(path):
        for name, attributes in _elements(path):
            if name == "edge":
                # only edges within junctions or walking areas have the attribute `function`
                within = "from" in attributes and "function" not in attributes
                if within:
                    found.append(_Edge(attributes, []))
                    points += 2 + attributes.get("shape", "").count(" ")
                    if points > MOST_POINTS:
                        raise _too_large(path, f"{MOST_POINTS:,} points of streets")
            elif name == "lane" and within:
                found[-1].lanes.append(attributes)
            elif name == "junction" and attributes.get("type") != "internal":
                junctions[attributes["id"]] = _pair(attributes["x"], attributes["y"])
        streets = [(one, _line(one.attributes, junctions)) for one in found]
        _in_metres(path, list(junctions.values()))
        if not streets:
            raise EdgeflError(f"{path}: has no street; give a network made by netconvert or netgenerate")
    return streets


def _elements(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield name and attributes of each element of a network.

    Raises:
        EdgeflError: the file is not a network, or is too large; the message names the remedy.
    """
    read: list[tuple[str, Mapping[str, str]]] = []
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: read.append((name, attributes))
    first = True
    for given in foreign_files.parse_xml(parser, path):
        if first and read and read[0][0] != "net":
            how = {"osm": "convert it with netconvert --osm-files", "xodr": "convert it with netconvert"}
            remedy = how.get(read[0][0], "give a network made by netconvert or netgenerate")
            raise EdgeflError(f"{path}: <{read[0][0]}> is not a SUMO network; {remedy}")
        first &= not read
        yield from read
        read.clear()
        if given > LARGEST_FILE:
            raise _too_large(path, f"{LARGEST_FILE // 1_000_000} MB, unpacked")


def _too_large(path: Path, most: str) -> EdgeflError:
    """Return the error about a network that exceeds a limit."""
    return EdgeflError(
        f"{path}: has more than {most}; cut out a smaller network with netconvert --keep-edges.in-boundary"
    )


def _in_metres(path: Path, places: list[Pair]) -> None:
    """Raise an error if positions of a network are in degrees."""
    if look_like_degrees(places):
        raise EdgeflError(
            f"{path}: coordinates such as ({places[0][0]:g}, {places[0][1]:g}) look like degrees; convert the"
            " network to metres with netconvert -s FILE --proj.utm"
        )


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Add the file and a remedy to errors in reading a SUMO network."""
    with foreign_files.reading(path, *PLACE), about(*PLACE):
        try:
            yield
        except EdgeflError:
            raise
        except (ValueError, KeyError) as error:
            reason = f"an element has no {error}" if isinstance(error, KeyError) else str(error)
            raise EdgeflError(f"{path}: is not a SUMO network ({reason}); check the file") from error


def _line(edge: Mapping[str, str], junctions: Mapping[str, Pair]) -> list[Pair]:
    """Return the corners of an edge: the corners of its shape, with the first and the last replaced by the junctions.

    Raises:
        ValueError: a position is malformed, or a junction is missing; the message names the edge.
    """
    name = quoted(edge.get("id", ""))
    ends = edge["from"], edge["to"]
    for end in ends:
        if end not in junctions:
            raise ValueError(f"edge {name} ends at junction {quoted(end)}, which is missing")
    try:
        shape = [_pair(*corner.split(",")[:2]) for corner in edge.get("shape", "").split()]
    except (ValueError, TypeError) as error:
        raise ValueError(f"edge {name} has the malformed shape {quoted(edge['shape'])}") from error
    return [junctions[ends[0]], *shape[1:-1], junctions[ends[1]]]


def _pair(x: str, y: str) -> Pair:
    pair = float(x), float(y)
    if not math.isfinite(sum(pair)):
        raise ValueError(f"{x}, {y} is not a finite position")
    return pair
