"""Read ns-2 movement files, as written by setdest, BonnMotion and SUMO's traceExporter.

A node moves to the place of its last `setdest` at the speed given there, and then waits for the next command.
Source: The ns Manual, chapter 16.1, "Mobile nodes: creating node movements"; speed 0 stops a node, as in ns-3's
Ns2MobilityHelper.
"""

import math
import re
from array import array
from pathlib import Path

from edgefl.mobility._traces._lines import Head, Waypoint, add_node, numbered
from edgefl.mobility._traces._samples import BadRow, Samples

_NODE = r"\$\w+\((?P<id>[\w.:-]+)\)"
_SET = re.compile(
    rf'^(?:\$ns_?\s+at\s+(?P<t>\S+)\s+")?{_NODE}\s+set\s+(?P<axis>[XY])_\s+(?P<value>[^\s"]+)"?'
)
_SETDEST = re.compile(
    rf'^\$ns_?\s+at\s+(?P<t>\S+)\s+"{_NODE}\s+setdest\s+(?P<x>\S+)\s+(?P<y>\S+)\s+(?P<speed>[^\s"]+)"?'
)
SIZE = 5  # numbers per command: t, line, x, y, speed; without a speed the node jumps to the place


def begins(head: Head) -> bool:
    """Return whether a file with this beginning is an ns-2 movement file."""
    return any(_SET.match(line) or _SETDEST.match(line) for line in head.lines[:500])


def read(path: Path, samples: Samples) -> None:
    """Add the samples of an ns-2 file; all nodes are present from time 0 until the last node arrives."""
    samples.in_degrees(False)
    nodes: dict[str, array[float]] = {}
    for line, text in numbered(path):
        try:
            _command(line, text, nodes, samples)
        except BadRow as bad:
            samples.skip(bad)
    ways = {}
    for id_, commands in nodes.items():
        try:
            ways[id_] = _way(id_, commands, samples)
        except BadRow as bad:
            samples.skip(bad)
    end_s = max((way[-1][1] for way in ways.values()), default=0.0)
    for id_, way in ways.items():
        add_node(samples, id_, way, end_s)


def _command(line: int, text: str, nodes: "dict[str, array[float]]", samples: Samples) -> None:
    """Record the command in a line, if the command moves a node."""
    if found := _SETDEST.match(text):
        t, x, y, speed = (
            samples.number(line, name, found[name], "write a number") for name in ("t", "x", "y", "speed")
        )
        if speed < 0:
            raise samples.bad_row(line, f"speed {speed:g} is below 0; write a speed in m/s")
        nodes.setdefault(found["id"], array("d")).extend((t, line, x, y, speed))
    elif found := _SET.match(text):
        t = samples.number(line, "t", found["t"] or "0", "write a number")
        value = samples.number(line, f"{found['axis']}_", found["value"], "write a number")
        place = (value, math.nan) if found["axis"] == "X" else (math.nan, value)
        nodes.setdefault(found["id"], array("d")).extend((t, line, *place, math.nan))
    elif "setdest" in text and text[0] == "$":
        raise samples.bad_row(line, 'is not a setdest; write $ns_ at TIME "$node_(ID) setdest X Y SPEED"')


def _way(id_: str, commands: "array[float]", samples: Samples) -> list[Waypoint]:
    """Return the waypoints of a node, in order of time."""
    ordered = sorted(tuple(commands[at : at + SIZE]) for at in range(0, len(commands), SIZE))
    line = int(ordered[0][1])
    placed = [(x, y) for _, _, x, y, speed in ordered if math.isnan(speed)]
    x, y = (
        next((place[axis] for place in placed if not math.isnan(place[axis])), math.nan) for axis in (0, 1)
    )
    if math.isnan(x) or math.isnan(y):
        raise samples.bad_row(line, f"node {id_} has no initial position; set its X_ and Y_")
    way = [(line, 0.0, x, y)]
    to, speed = (x, y), 0.0
    for t, number, x_to, y_to, new_speed in ordered:
        line = int(number)
        _move(way, line, t, to, speed)
        _, now, x, y = way[-1]
        if math.isnan(new_speed):  # set X_ or Y_: the node jumps there
            to, speed = (x if math.isnan(x_to) else x_to, y if math.isnan(y_to) else y_to), 0.0
            if to != (x, y):
                before = (line, math.nextafter(now, -1.0), x, y)
                jumps_again = len(way) > 1 and way[-2][1] == before[1]
                way[-1:] = [(line, now, *to)] if jumps_again or now == 0 else [before, (line, now, *to)]
        else:
            to, speed = (x_to, y_to), new_speed
    _move(way, line, math.inf, to, speed)
    return way


def _move(way: list[Waypoint], line: int, t: float, to: tuple[float, float], speed: float) -> None:
    """Add the waypoints of a node until time t, on its way to a place at a speed."""
    _, now, x, y = way[-1]
    length = math.hypot(to[0] - x, to[1] - y)
    arrival = now + length / speed if length and speed else math.inf
    if arrival <= t and arrival < math.inf:
        way.append((line, arrival, *to))
    if now < t < math.inf:
        share = 0.0 if arrival == math.inf else min((t - now) / (arrival - now), 1.0)
        if t > way[-1][1]:
            way.append((line, t, x + share * (to[0] - x), y + share * (to[1] - y)))
